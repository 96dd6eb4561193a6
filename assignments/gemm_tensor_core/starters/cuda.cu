// Tensor-core GEMM: c = a * b^T, one tile of 16 x 16 of c per block, which is one warp.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 16;

template <typename T>
__global__ void gemm_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                            int64_t b_row_stride, int64_t c_row_stride) {
  __shared__ alignas(32) T a_tile[TILE][TILE], b_tile[TILE][TILE];
  __shared__ alignas(32) float c_tile[TILE][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;

  // Fragments are loaded from shared memory: there, what is outside the matrices can be zero, and everything is aligned.
  for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
    const int64_t row = first_row + i / TILE, column = first_column + i / TILE, l = i % TILE;
    a_tile[i / TILE][i % TILE] = row < m && l < k ? a[row * a_row_stride + l] : static_cast<T>(0.0f);
    b_tile[i / TILE][i % TILE] = column < n && l < k ? b[column * b_row_stride + l] : static_cast<T>(0.0f);
  }
  __syncwarp();

  // Rows of b are columns of the product: for wmma its tile is stored by columns.
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 0.0f);
  wmma::load_matrix_sync(left, &a_tile[0][0], TILE);
  wmma::load_matrix_sync(right, &b_tile[0][0], TILE);

  // Your part: this is the first slice of K only. Then: more fragments for each warp, more warps for each block, and the next
  // slice in flight while this one is multiplied.
  wmma::mma_sync(sums, left, right, sums);

  wmma::store_matrix_sync(&c_tile[0][0], sums, TILE, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < TILE * TILE; i += 32) {
    const int64_t row = first_row + i / TILE, column = first_column + i % TILE;
    if (row < m && column < n) c[row * c_row_stride + column] = static_cast<T>(c_tile[i / TILE][i % TILE]);
  }
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's matrices.
template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  gemm_kernel<<<blocks, 32, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
