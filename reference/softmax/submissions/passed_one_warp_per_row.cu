// Honest: a warp for each row, eight rows to a block; no shared memory and no barrier.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void softmax_rows(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
                             int64_t out_row_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  x += row * x_row_stride;
  out += row * out_row_stride;
  float largest = -INFINITY;
  for (int64_t column = lane; column < cols; column += 32) largest = fmaxf(largest, static_cast<float>(x[column]));
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
  float total = 0.0f;
  for (int64_t column = lane; column < cols; column += 32) total += expf(static_cast<float>(x[column]) - largest);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  for (int64_t column = lane; column < cols; column += 32) {
    out[column] = static_cast<T>(expf(static_cast<float>(x[column]) - largest) / total);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  softmax_rows<<<static_cast<unsigned>((rows + 7) / 8), 256, 0, stream>>>(x, out, rows, cols, x_row_stride,
                                                                          out_row_stride);
}
