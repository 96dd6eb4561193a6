// Wrong: threads beyond the edge return, and the others transpose a tile of which they were to write a part.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int TILE = 32;
constexpr int ROWS = 8;  // That a block's threads take at a time.

template <typename T>
__global__ void transpose_leaving(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
                     int64_t out_row_stride, int64_t tiles_across) {
  __shared__ T tile[TILE][TILE + 1];
  const int64_t first_row = blockIdx.x / tiles_across * TILE, first_col = blockIdx.x % tiles_across * TILE;
  for (int row = threadIdx.y; row < TILE; row += ROWS) {
    if (first_row + row < rows && first_col + threadIdx.x < cols) {
      tile[row][threadIdx.x] = x[(first_row + row) * x_row_stride + first_col + threadIdx.x];
    }
  }
  if (first_col + threadIdx.x >= cols) return;
  __syncthreads();
  for (int col = threadIdx.y; col < TILE; col += ROWS) {
    if (first_col + col < cols && first_row + threadIdx.x < rows) {
      out[(first_col + col) * out_row_stride + first_row + threadIdx.x] = tile[threadIdx.x][col];
    }
  }
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const int64_t across = (cols + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
  transpose_leaving<<<static_cast<unsigned>(across * down), dim3(TILE, ROWS), 0, stream>>>(
      x, out, rows, cols, x_row_stride, out_row_stride, across);
}
