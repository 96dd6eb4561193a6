// nvcuda::wmma fragments of 16x16x16 from tiles in shared memory; sums go back through shared memory to be masked.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 64, DEPTH = 32, PITCH = DEPTH + 8, SUM_PITCH = TILE + 4, THREADS = 128;

template <typename T>
__device__ void load_tile(T (*tile)[PITCH], const T* from, int64_t row0, int64_t col0, int64_t rows, int64_t cols,
                          int64_t stride) {
  for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
    const int64_t row = row0 + i / DEPTH, col = col0 + i % DEPTH;
    tile[i / DEPTH][i % DEPTH] = row < rows && col < cols ? from[row * stride + col] : static_cast<T>(0.0f);
  }
}

template <typename T>
__global__ void gemm_wmma(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
                          int64_t ldc) {
  __shared__ alignas(32) T left_tile[TILE][PITCH];
  __shared__ alignas(32) T right_tile[TILE][PITCH];
  __shared__ alignas(32) float sums[TILE][SUM_PITCH];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * TILE, col0 = static_cast<int64_t>(blockIdx.x) * TILE;
  const int warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
  }
  for (int64_t start = 0; start < k; start += DEPTH) {
    load_tile(left_tile, a, row0, start, m, k, lda);
    load_tile(right_tile, b, col0, start, n, k, ldb);
    __syncthreads();
    for (int kk = 0; kk < DEPTH; kk += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right[2];
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], &left_tile[warp_row + 16 * i][kk], PITCH);
        wmma::load_matrix_sync(right[i], &right_tile[warp_col + 16 * i][kk], PITCH);
      }
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], left[i], right[j], acc[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(&sums[warp_row + 16 * i][warp_col + 16 * j], acc[i][j], SUM_PITCH, wmma::mem_row_major);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int64_t row = row0 + i / TILE, col = col0 + i % TILE;
    if (row < m && col < n) c[row * ldc + col] = static_cast<T>(sums[i / TILE][i % TILE]);
  }
}

template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  gemm_wmma<T><<<grid, THREADS, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
