// Matmul, second milestone: tiles of 16 x 16 in shared memory, every loaded element used 16 times.
//
// The traffic of the first milestone divided by 16. What is left: each multiplication still needs two loads from shared memory,
// and no tensor core is used.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int TILE = 16;

template <typename T>
__global__ void matmul_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                              int64_t b_row_stride, int64_t c_row_stride) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int64_t start = 0; start < k; start += TILE) {
    const int64_t a_column = start + threadIdx.x, b_row = start + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] =
        row < m && a_column < k ? static_cast<float>(a[row * a_row_stride + a_column]) : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] =
        b_row < k && column < n ? static_cast<float>(b[b_row * b_row_stride + column]) : 0.0f;
    __syncthreads();
    for (int l = 0; l < TILE; ++l) sum += a_tile[threadIdx.y][l] * b_tile[l][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * c_row_stride + column] = static_cast<T>(sum);
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  matmul_kernel<<<blocks, dim3(TILE, TILE), 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
