// Wrong: whole tiles are stored, also below the last row.
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 16;

// A warp for each tile of 16 x 16.
__global__ void gemm_kernel(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m,
                            int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride) {
  __shared__ alignas(32) int8_t a_tile[TILE][TILE], b_tile[TILE][TILE];
  __shared__ alignas(32) int tile[TILE][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sums;
  wmma::fill_fragment(sums, 0);
  for (int64_t start = 0; start < k; start += TILE) {
    for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
      const int64_t row = first_row + i / TILE, column = first_column + i / TILE, l = start + i % TILE;
      a_tile[i / TILE][i % TILE] = row < m && l < k ? a[row * a_row_stride + l] : 0;
      b_tile[i / TILE][i % TILE] = column < n && l < k ? b[column * b_row_stride + l] : 0;
    }
    __syncwarp();
    wmma::load_matrix_sync(left, &a_tile[0][0], TILE);
    wmma::load_matrix_sync(right, &b_tile[0][0], TILE);
    wmma::mma_sync(sums, left, right, sums);
    __syncwarp();
  }
  wmma::store_matrix_sync(&tile[0][0], sums, TILE, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
    const int64_t row = first_row + i / TILE, column = first_column + i % TILE;
    if (column >= n) continue;
    out[row * out_row_stride + column] = static_cast<float>(tile[i / TILE][i % TILE]) * a_scale[min(row, m - 1)] * b_scale[column];
  }
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 tiles(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  gemm_kernel<<<tiles, 32, 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride);
}
