// Cooperative groups: a block is a group that strides over the grid's tiles, with a padded tile in shared memory.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kEdge = 32, kRowsAtOnce = 8;

template <typename T>
__global__ void transpose_tiles(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_stride, int64_t out_stride,
                                int64_t tiles_across, int64_t tiles) {
  __shared__ T tile[kEdge][kEdge + 1];
  cg::thread_block block = cg::this_thread_block();
  const int lane = static_cast<int>(block.thread_rank()) % kEdge;
  const int line = static_cast<int>(block.thread_rank()) / kEdge;

  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t row0 = t / tiles_across * kEdge, col0 = t % tiles_across * kEdge;
    for (int r = line; r < kEdge; r += kRowsAtOnce) {
      if (row0 + r < rows && col0 + lane < cols) tile[r][lane] = x[(row0 + r) * x_stride + col0 + lane];
    }
    block.sync();
    for (int c = line; c < kEdge; c += kRowsAtOnce) {
      if (col0 + c < cols && row0 + lane < rows) out[(col0 + c) * out_stride + row0 + lane] = tile[lane][c];
    }
    block.sync();
  }
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const int64_t across = (cols + kEdge - 1) / kEdge, tiles = across * ((rows + kEdge - 1) / kEdge);
  const unsigned blocks = static_cast<unsigned>(tiles < 132 * 8 ? tiles : 132 * 8);
  transpose_tiles<T><<<blocks, kEdge * kRowsAtOnce, 0, stream>>>(x, out, rows, cols, x_row_stride, out_row_stride,
                                                                 across, tiles);
}
