// Matmul, third milestone: tiles of 64 x 64, and 4 x 4 sums for each thread, in registers.
//
// Eight loads from shared memory now feed sixteen multiplications instead of four, and every element that comes from memory
// is used 64 times.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int TILE = 64;
constexpr int DEPTH = 16;
constexpr int SUMS = 4;

template <typename T>
__global__ void matmul_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                              int64_t b_row_stride, int64_t c_row_stride) {
  __shared__ float a_slice[DEPTH][TILE + 1], b_slice[DEPTH][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  float sums[SUMS][SUMS] = {};
  for (int64_t start = 0; start < k; start += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += blockDim.x) {
      const int64_t r = first_row + i / DEPTH, l = start + i % DEPTH;
      a_slice[i % DEPTH][i / DEPTH] = r < m && l < k ? static_cast<float>(a[r * a_row_stride + l]) : 0.0f;
    }
    for (int i = threadIdx.x; i < TILE * DEPTH; i += blockDim.x) {
      const int64_t l = start + i / TILE, j = first_column + i % TILE;
      b_slice[i / TILE][i % TILE] = l < k && j < n ? static_cast<float>(b[l * b_row_stride + j]) : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < DEPTH; ++l) {
      for (int i = 0; i < SUMS; ++i) {
        for (int j = 0; j < SUMS; ++j) sums[i][j] += a_slice[l][row + 16 * i] * b_slice[l][column + 16 * j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < SUMS; ++i) {
    for (int j = 0; j < SUMS; ++j) {
      const int64_t r = first_row + row + 16 * i, s = first_column + column + 16 * j;
      if (r < m && s < n) c[r * c_row_stride + s] = static_cast<T>(sums[i][j]);
    }
  }
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  matmul_kernel<<<blocks, 256, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
