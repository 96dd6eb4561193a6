// Tiled matmul: c = a @ b, one tile of 16 x 16 of c per block, one element of it per thread.
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

  // Each thread loads one element of each tile; the block uses all of them, 16 times each. Outside the matrices there are
  // zeros, which change no sum.
  const bool in_a = row < m && threadIdx.x < k, in_b = threadIdx.y < k && column < n;
  a_tile[threadIdx.y][threadIdx.x] = in_a ? static_cast<float>(a[row * a_row_stride + threadIdx.x]) : 0.0f;
  b_tile[threadIdx.y][threadIdx.x] = in_b ? static_cast<float>(b[threadIdx.y * b_row_stride + column]) : 0.0f;
  __syncthreads();

  // Your part: this is the first slice of K only. Walk over all of them. When may the tiles be overwritten?
  float sum = 0.0f;
  for (int l = 0; l < TILE; ++l) sum += a_tile[threadIdx.y][l] * b_tile[l][threadIdx.x];

  if (row < m && column < n) c[row * c_row_stride + column] = static_cast<T>(sum);
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's matrices.
template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const dim3 threads(TILE, TILE);
  const dim3 blocks(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  matmul_kernel<<<blocks, threads, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
