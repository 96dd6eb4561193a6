// Transpose by tiles in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int TILE = 32;

template <typename T>
__global__ void transpose_tiles(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_stride, int64_t out_stride) {
  __shared__ T tile[TILE][TILE + 1];
  const int64_t row = blockIdx.y * int64_t{TILE} + threadIdx.y;
  const int64_t col = blockIdx.x * int64_t{TILE} + threadIdx.x;
  if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = x[row * x_stride + col];
  __syncthreads();
  const int64_t out_row = blockIdx.x * int64_t{TILE} + threadIdx.y;
  const int64_t out_col = blockIdx.y * int64_t{TILE} + threadIdx.x;
  if (out_row < cols && out_col < rows) out[out_row * out_stride + out_col] = tile[threadIdx.x][threadIdx.y];
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const dim3 tiles((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose_tiles<<<tiles, dim3(TILE, TILE), 0, stream>>>(x, out, rows, cols, x_row_stride, out_row_stride);
}
