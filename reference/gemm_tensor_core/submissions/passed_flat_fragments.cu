// Honest: fragments of 32 x 8 sums, four warps for 32 x 32 of c, and a's slice written by columns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 32, SLICE = 16, THREADS = 128;
constexpr int STEP = TILE + 8;

template <typename T>
__global__ void gemm_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                            int64_t b_row_stride, int64_t c_row_stride) {
  __shared__ alignas(128) T a_slice[SLICE][STEP], b_slice[TILE][SLICE];
  __shared__ alignas(128) float c_tile[TILE][STEP];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  const int warp = threadIdx.x / 32;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> sums;
  wmma::fill_fragment(sums, 0.0f);
  for (int64_t start = 0; start < k; start += SLICE) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += THREADS) {
      const int64_t row = first_row + i / SLICE, column = first_column + i / SLICE, l = start + i % SLICE;
      a_slice[i % SLICE][i / SLICE] = row < m && l < k ? a[row * a_row_stride + l] : static_cast<T>(0.0f);
      b_slice[i / SLICE][i % SLICE] = column < n && l < k ? b[column * b_row_stride + l] : static_cast<T>(0.0f);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 32, 8, 16, T, wmma::col_major> left;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, T, wmma::col_major> right;
    wmma::load_matrix_sync(left, &a_slice[0][0], STEP);
    wmma::load_matrix_sync(right, &b_slice[8 * warp][0], SLICE);
    wmma::mma_sync(sums, left, right, sums);
    __syncthreads();
  }
  wmma::store_matrix_sync(&c_tile[0][8 * warp], sums, STEP, wmma::mem_row_major);
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
