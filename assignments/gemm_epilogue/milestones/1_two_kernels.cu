// GEMM with an epilogue, first milestone: a product, then a second kernel for everything else.
//
// The sums go to memory in float and come back: eight bytes for each of parts * m * n, and one more launch. Nothing is rounded in
// between, so the result is right.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 16;

__device__ float gelu(float x) { return x / (1.0f + __expf(-1.5957691216057308f * (x + 0.044715f * x * x * x))); }
__device__ float silu(float x) { return x / (1.0f + __expf(-x)); }

template <typename T>
__global__ void product(const T* a, const T* b, float* sums_of_all, int64_t m, int64_t rows_of_b, int64_t k, int64_t a_row_stride,
                        int64_t b_row_stride) {
  __shared__ alignas(32) T a_tile[TILE][TILE], b_tile[TILE][TILE];
  __shared__ alignas(32) float c_tile[TILE][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 0.0f);
  for (int64_t start = 0; start < k; start += TILE) {
    for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
      const int64_t row = first_row + i / TILE, column = first_column + i / TILE, l = start + i % TILE;
      a_tile[i / TILE][i % TILE] = row < m && l < k ? a[row * a_row_stride + l] : static_cast<T>(0.0f);
      b_tile[i / TILE][i % TILE] = column < rows_of_b && l < k ? b[column * b_row_stride + l] : static_cast<T>(0.0f);
    }
    __syncwarp();
    wmma::load_matrix_sync(left, &a_tile[0][0], TILE);
    wmma::load_matrix_sync(right, &b_tile[0][0], TILE);
    wmma::mma_sync(sums, left, right, sums);
    __syncwarp();
  }
  wmma::store_matrix_sync(&c_tile[0][0], sums, TILE, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
    const int64_t row = first_row + i / TILE, column = first_column + i % TILE;
    if (row < m && column < rows_of_b) sums_of_all[row * rows_of_b + column] = c_tile[i / TILE][i % TILE];
  }
}

template <typename T>
__global__ void epilogue(const float* sums, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t parts,
                         int64_t residual_row_stride, int64_t out_row_stride) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= m * n) return;
  const int64_t row = element / n, column = element % n;
  const float* const own = sums + row * parts * n + column;
  const float h = own[0] + static_cast<float>(bias[column]);
  const float active = parts == 1 ? gelu(h) : silu(h) * (own[n] + static_cast<float>(bias[n + column]));
  out[row * out_row_stride + column] = static_cast<T>(active + static_cast<float>(residual[row * residual_row_stride + column]));
}

template <typename T>
void gemm_epilogue(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                   int64_t parts, int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride,
                   int64_t out_row_stride, cudaStream_t stream) {
  float* sums = nullptr;
  if (cudaMallocAsync(&sums, m * parts * n * sizeof(float), stream) != cudaSuccess) return;
  const dim3 tiles(static_cast<unsigned>((parts * n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  product<<<tiles, 32, 0, stream>>>(a, b, sums, m, parts * n, k, a_row_stride, b_row_stride);
  epilogue<<<static_cast<unsigned>((m * n + 255) / 256), 256, 0, stream>>>(sums, bias, residual, out, m, n, parts,
                                                                           residual_row_stride, out_row_stride);
  cudaFreeAsync(sums, stream);
}
