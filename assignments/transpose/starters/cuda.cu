// Transpose: out[j, i] = x[i, j], by tiles in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int TILE = 32;

template <typename T>
__global__ void transpose_tiles(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
                                int64_t out_row_stride) {
  // The block's tile. All its threads see the same array.
  __shared__ T tile[TILE][TILE];

  // Which element of x this thread reads. threadIdx.x goes along a row, so that neighbours read neighbours.
  const int64_t row = static_cast<int64_t>(blockIdx.y) * TILE + threadIdx.y;
  const int64_t col = static_cast<int64_t>(blockIdx.x) * TILE + threadIdx.x;
  if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = x[row * x_row_stride + col];
  // No thread reads the tile before all have written.
  __syncthreads();

  // Your part: the tile in column blockIdx.x of x's tiles is in row blockIdx.x of out's, and is turned. This puts it back where
  // it came from.
  const int64_t out_row = static_cast<int64_t>(blockIdx.y) * TILE + threadIdx.y;
  const int64_t out_col = static_cast<int64_t>(blockIdx.x) * TILE + threadIdx.x;
  if (out_row < cols && out_col < rows) out[out_row * out_row_stride + out_col] = tile[threadIdx.y][threadIdx.x];
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's matrices.
template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const dim3 tiles(static_cast<unsigned>((cols + TILE - 1) / TILE), static_cast<unsigned>((rows + TILE - 1) / TILE));
  transpose_tiles<<<tiles, dim3(TILE, TILE), 0, stream>>>(x, out, rows, cols, x_row_stride, out_row_stride);
}
