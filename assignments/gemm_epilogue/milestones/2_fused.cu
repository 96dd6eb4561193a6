// GEMM with an epilogue, second milestone: a warp for every 16 x 16 of out, which also does the epilogue of its sums.
//
// The sums never leave the multiprocessor. With two parts a warp keeps two fragments of them, and loads a once for both. The compiler
// knows the number of parts, so it can unroll the loads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 16;

__device__ float gelu(float x) { return x / (1.0f + __expf(-1.5957691216057308f * (x + 0.044715f * x * x * x))); }
__device__ float silu(float x) { return x / (1.0f + __expf(-x)); }

template <int PARTS, typename T>
__global__ void fused(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                      int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride, int64_t out_row_stride) {
  __shared__ alignas(32) T a_tile[TILE][TILE], b_tile[PARTS][TILE][TILE];
  __shared__ alignas(32) float h_tile[PARTS][TILE][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[PARTS];
  for (auto& sum : sums) wmma::fill_fragment(sum, 0.0f);
  for (int64_t start = 0; start < k; start += TILE) {
    for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
      const int64_t row = first_row + i / TILE, column = first_column + i / TILE, l = start + i % TILE;
      a_tile[i / TILE][i % TILE] = row < m && l < k ? a[row * a_row_stride + l] : static_cast<T>(0.0f);
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        const bool there = column < n && l < k;
        b_tile[part][i / TILE][i % TILE] = there ? b[(part * n + column) * b_row_stride + l] : static_cast<T>(0.0f);
      }
    }
    __syncwarp();
    wmma::load_matrix_sync(left, &a_tile[0][0], TILE);
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      wmma::load_matrix_sync(right, &b_tile[part][0][0], TILE);
      wmma::mma_sync(sums[part], left, right, sums[part]);
    }
    __syncwarp();
  }
#pragma unroll
  for (int part = 0; part < PARTS; ++part) {
    wmma::store_matrix_sync(&h_tile[part][0][0], sums[part], TILE, wmma::mem_row_major);
  }
  __syncwarp();
  for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
    const int64_t row = first_row + i / TILE, column = first_column + i % TILE;
    if (row >= m || column >= n) continue;
    const float h = h_tile[0][i / TILE][i % TILE] + static_cast<float>(bias[column]);
    float active = gelu(h);
    if constexpr (PARTS == 2) active = silu(h) * (h_tile[1][i / TILE][i % TILE] + static_cast<float>(bias[n + column]));
    out[row * out_row_stride + column] = static_cast<T>(active + static_cast<float>(residual[row * residual_row_stride + column]));
  }
}

template <typename T>
void gemm_epilogue(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                   int64_t parts, int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride,
                   int64_t out_row_stride, cudaStream_t stream) {
  const dim3 tiles(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  if (parts == 1) {
    fused<1><<<tiles, 32, 0, stream>>>(a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride,
                                       out_row_stride);
  } else {
    fused<2><<<tiles, 32, 0, stream>>>(a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride,
                                       out_row_stride);
  }
}
