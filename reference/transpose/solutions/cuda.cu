// Transpose, the staff kernel: out[j, i] = x[i, j].
//
// 2·rows·cols·e bytes and no arithmetic. A block owns one tile of 256 bytes by as many elements. A thread loads a square of it
// in packs of 16 bytes, as many rows as a pack has elements, and turns it in its registers, where turning costs nothing but
// names: every pack that comes out belongs to a row of out. Packs go into shared memory, and behind the barrier the threads
// take them out again in the order of out's rows, so that loads and stores both touch whole runs of 256 bytes.
//
// The pack of a thread's column goes to place group ^ unit of its row instead of place group: neighbouring threads write to
// different banks then, and those who read a row still read all of it. That is the exclusive-or swizzle.
//
// Where rows do not begin at multiples of 16 bytes or have no whole packs, a second kernel moves single elements by way of a
// padded tile.
//
// Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA", NVIDIA 2009.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int PACK_BYTES = 16;
constexpr int UNITS = 16;  // Packs of a row of the tile, and squares of the tile one below the other.
constexpr int WARP = 32;
constexpr int WARPS = 8;
constexpr int PADDED_TILE = 64;

template <typename T>
__global__ void __launch_bounds__(UNITS* UNITS, 2)
    transpose_packs(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  constexpr int TILE = UNITS * WIDTH;
  __shared__ uint4 turned[TILE][UNITS];
  const int64_t tiles_across = (cols + TILE - 1) / TILE;
  const int64_t first_row = blockIdx.x / tiles_across * TILE, first_col = blockIdx.x % tiles_across * TILE;
  const int unit = threadIdx.x % UNITS, group = threadIdx.x / UNITS;

  // Rows and columns come in whole packs, so that a square is in the matrix or outside of it.
  const int64_t row = first_row + group * WIDTH, col = first_col + unit * WIDTH;
  if (row < rows && col < cols) {
    uint4 loaded[WIDTH];
#pragma unroll
    for (int r = 0; r < WIDTH; ++r) loaded[r] = *reinterpret_cast<const uint4*>(x + (row + r) * x_row_stride + col);
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
      uint4 pack;
#pragma unroll
      for (int r = 0; r < WIDTH; ++r) reinterpret_cast<T*>(&pack)[r] = reinterpret_cast<const T*>(&loaded[r])[c];
      turned[unit * WIDTH + c][group ^ unit] = pack;
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) {
    const int c = k * UNITS + group;
    const int64_t out_row = first_col + c, out_col = first_row + unit * WIDTH;
    if (out_row < cols && out_col < rows) {
      *reinterpret_cast<uint4*>(out + out_row * out_row_stride + out_col) = turned[c][unit ^ (c / WIDTH)];
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(WARP* WARPS)
    transpose_elements(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  // One word of padding: the elements of a column lie in different banks.
  __shared__ T tile[PADDED_TILE][PADDED_TILE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  const int64_t tiles_across = (cols + PADDED_TILE - 1) / PADDED_TILE;
  const int64_t first_row = blockIdx.x / tiles_across * PADDED_TILE;
  const int64_t first_col = blockIdx.x % tiles_across * PADDED_TILE;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (int row = warp; row < PADDED_TILE && first_row + row < rows; row += WARPS) {
    for (int col = lane; col < PADDED_TILE && first_col + col < cols; col += WARP) {
      tile[row][col] = x[(first_row + row) * x_row_stride + first_col + col];
    }
  }
  __syncthreads();
  for (int col = warp; col < PADDED_TILE && first_col + col < cols; col += WARPS) {
    for (int row = lane; row < PADDED_TILE && first_row + row < rows; row += WARP) {
      out[(first_col + col) * out_row_stride + first_row + row] = tile[row][col];
    }
  }
}

unsigned tiles(int64_t rows, int64_t cols, int64_t edge) {
  return static_cast<unsigned>(((rows + edge - 1) / edge) * ((cols + edge - 1) / edge));
}

template <typename T>
void transpose(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out);
  const bool whole_packs = (rows | cols | x_row_stride | out_row_stride) % WIDTH == 0;
  if (begins % PACK_BYTES == 0 && whole_packs) {
    transpose_packs<<<tiles(rows, cols, UNITS * WIDTH), UNITS * UNITS, 0, stream>>>(x, out, rows, cols, x_row_stride,
                                                                                    out_row_stride);
  } else {
    transpose_elements<<<tiles(rows, cols, PADDED_TILE), WARP * WARPS, 0, stream>>>(x, out, rows, cols, x_row_stride,
                                                                                    out_row_stride);
  }
}
