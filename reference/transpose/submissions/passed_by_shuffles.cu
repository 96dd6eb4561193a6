// Honest: a warp turns 32 x 32 elements by shuffles alone, without shared memory. In round r lane l asks lane (l + r) % 32 for
// what belongs to it; which register that lane gives is found by looking at all of them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void transpose_shuffled(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
                                   int64_t out_row_stride, int64_t tiles_across) {
  const int lane = threadIdx.x;
  const int64_t first_row = blockIdx.x / tiles_across * 32, first_col = blockIdx.x % tiles_across * 32;
  T held[32];
#pragma unroll
  for (int row = 0; row < 32; ++row) {
    const bool there = first_row + row < rows && first_col + lane < cols;
    held[row] = there ? x[(first_row + row) * x_row_stride + first_col + lane] : static_cast<T>(0.0f);
  }
#pragma unroll 1
  for (int round = 0; round < 32; ++round) {
    // Lane l gives row (l - round) mod 32 of its column, and gets row l of column (l + round) mod 32.
    T given = held[0];
#pragma unroll
    for (int row = 1; row < 32; ++row) given = (lane - round + 32) % 32 == row ? held[row] : given;
    const int col = (lane + round) % 32;
    const T got = __shfl_sync(0xffffffffu, given, col);
    if (first_row + lane < rows && first_col + col < cols) {
      out[(first_col + col) * out_row_stride + first_row + lane] = got;
    }
  }
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const int64_t across = (cols + 31) / 32, down = (rows + 31) / 32;
  transpose_shuffled<<<static_cast<unsigned>(across * down), 32, 0, stream>>>(x, out, rows, cols, x_row_stride,
                                                                             out_row_stride, across);
}
