// Transpose, first milestone: a thread for each element, rows of x read, columns of out written.
//
// The 32 threads of a warp read one line, and write to 32 rows of out: 32 sectors, of each of which they need one element.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int TILE = 32;
constexpr int ROWS = 8;  // That a block's threads take at a time.

template <typename T>
__global__ void transpose_naive(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
                                int64_t out_row_stride, int64_t tiles_across) {
  const int64_t col = blockIdx.x % tiles_across * TILE + threadIdx.x;
  const int64_t first_row = blockIdx.x / tiles_across * TILE + threadIdx.y;
  for (int64_t row = first_row; row < first_row - threadIdx.y + TILE && row < rows; row += ROWS) {
    if (col < cols) out[col * out_row_stride + row] = x[row * x_row_stride + col];
  }
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const int64_t across = (cols + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
  transpose_naive<<<static_cast<unsigned>(across * down), dim3(TILE, ROWS), 0, stream>>>(
      x, out, rows, cols, x_row_stride, out_row_stride, across);
}
