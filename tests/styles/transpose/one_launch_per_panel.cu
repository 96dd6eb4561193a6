// Many launches in a call, one for each panel of 256 rows, without shared memory, and cudaDeviceSynchronize at the end.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kPanel = 256;

// Neighbouring threads read neighbours of a row of x and write to different rows of out.
template <typename T>
__global__ void turn_panel(const T* x, T* out, int64_t first_row, int64_t rows, int64_t cols, int64_t x_stride,
                           int64_t out_stride) {
  const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t row = first_row + static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) out[col * out_stride + row] = x[row * x_stride + col];
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const dim3 threads(16, 16);
  const dim3 blocks(static_cast<unsigned>((cols + 15) / 16), kPanel / 16);
  for (int64_t first = 0; first < rows; first += kPanel) {
    turn_panel<T><<<blocks, threads, 0, stream>>>(x, out, first, rows, cols, x_row_stride, out_row_stride);
  }
  cudaDeviceSynchronize();
}
