// GEMM, second milestone: a block of four warps for 64 x 64 of c, a warp for 32 x 32 of it.
//
// Every element that comes from memory is used 64 times, and every fragment twice. What remains: at each barrier all warps wait
// until the whole slice has arrived, one element for each thread and load.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 64, SLICE = 32, THREADS = 128;
constexpr int STEP = SLICE + 8;  // Padded, so that the rows of a fragment lie in different banks.

template <typename T>
__global__ void gemm_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                            int64_t b_row_stride, int64_t c_row_stride) {
  __shared__ alignas(128) T a_slice[TILE][STEP], b_slice[TILE][STEP];
  __shared__ alignas(128) float c_tile[TILE][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  const int warp_row = threadIdx.x / 64 * 32, warp_column = threadIdx.x / 32 % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }
  for (int64_t start = 0; start < k; start += SLICE) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += THREADS) {
      const int64_t row = first_row + i / SLICE, column = first_column + i / SLICE, l = start + i % SLICE;
      a_slice[i / SLICE][i % SLICE] = row < m && l < k ? a[row * a_row_stride + l] : static_cast<T>(0.0f);
      b_slice[i / SLICE][i % SLICE] = column < n && l < k ? b[column * b_row_stride + l] : static_cast<T>(0.0f);
    }
    __syncthreads();
    for (int l = 0; l < SLICE; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right[2];
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(left[i], &a_slice[warp_row + 16 * i][l], STEP);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], &b_slice[warp_column + 16 * j][l], STEP);
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      float* const corner = &c_tile[warp_row + 16 * i][warp_column + 16 * j];
      wmma::store_matrix_sync(corner, sums[i][j], TILE, wmma::mem_row_major);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int64_t row = first_row + i / TILE, column = first_column + i % TILE;
    if (row < m && column < n) c[row * c_row_stride + column] = static_cast<T>(c_tile[i / TILE][i % TILE]);
  }
}

template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  gemm_kernel<<<blocks, THREADS, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
