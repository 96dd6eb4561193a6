// GEMM with an epilogue, third milestone: 128 x 256 sums for a block, 64 x 64 for a warp, and two buffers, as in rung 14.
//
// With a gate these are the sums of 128 columns of both parts, and a warp holds 64 x 32 of each, for the same elements of out, so that
// no warp needs another's sums. The sums go out sixteen rows at a time through the warp's own floats, where eight neighbours get
// their bias, activation and residual, are rounded, and are stored at once. What remains: mma.sync, and tensor cores that are idle
// while a block finishes its tile.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 32;
constexpr int THREADS = 256;
constexpr int GROUP = 16;                   // Rows of tiles that are walked through together.
constexpr int FRAGMENTS = 4;                // Of a warp, in both directions.
constexpr int WARP_TILE = 16 * FRAGMENTS;   // 64 rows and 64 columns; two warps share the columns, four the rows.
constexpr int WARPS_ACROSS = TILE_N / WARP_TILE;
constexpr int PACK = 8;                     // 16-bit numbers in 16 bytes.
constexpr int STEP = SLICE + PACK;          // Padded, so that the rows of a fragment lie in different banks.
constexpr int OUT_STEP = WARP_TILE + 4;     // The same for floats on their way out.
constexpr int PACKS_A = TILE_M * SLICE / PACK / THREADS, PACKS_B = TILE_N * SLICE / PACK / THREADS;
constexpr int BUFFER = (TILE_M + TILE_N) * STEP;  // Numbers of one slice of both factors.
constexpr int SHARED_BYTES = 2 * BUFFER * 2;

__host__ __device__ int tiles(int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); }

template <typename T>
struct Matrix {
  T* start;
  int64_t rows, columns, stride;
  bool aligned;  // Whether every row begins at a multiple of 16 bytes.

  __device__ bool has(int64_t row, int64_t column) const { return row < rows && column < columns; }
  __device__ bool has_pack(int64_t row, int64_t column) const { return aligned && has(row, column + PACK - 1); }
  __device__ T* at(int64_t row, int64_t column) const { return start + row * stride + column; }
};

// Eight neighbours of a row: in one load where they may be, and zeros for what is outside the matrix.
template <typename T>
__device__ uint4 load_pack(const Matrix<const T>& from, int64_t row, int64_t column) {
  if (from.has_pack(row, column)) return *reinterpret_cast<const uint4*>(from.at(row, column));
  uint4 pack = {0, 0, 0, 0};
  for (int i = 0; i < PACK; ++i) {
    if (from.has(row, column + i)) reinterpret_cast<T*>(&pack)[i] = *from.at(row, column + i);
  }
  return pack;
}

// Eight neighbours of a row in one store where they may be.
template <typename T>
__device__ void store_pack(const Matrix<T>& to, int64_t row, int64_t column, uint4 pack) {
  if (to.has_pack(row, column)) {
    *reinterpret_cast<uint4*>(to.at(row, column)) = pack;
    return;
  }
  for (int i = 0; i < PACK; ++i) {
    if (to.has(row, column + i)) *to.at(row, column + i) = reinterpret_cast<T*>(&pack)[i];
  }
}

__device__ float gelu(float x) { return x / (1.0f + __expf(-1.5957691216057308f * (x + 0.044715f * x * x * x))); }
__device__ float silu(float x) { return x / (1.0f + __expf(-x)); }

// What there is besides the factors.
template <typename T>
struct Epilogue {
  const T* bias;
  Matrix<const T> residual;
  Matrix<T> out;

  // `sums` has the gate's or the only sums, and a gate's values lie half a warp's tile behind them.
  template <bool GATED>
  __device__ void finish(int64_t row, int64_t column, const float* sums) const {
    const uint4 added = load_pack(residual, row, column);
    uint4 pack;
    for (int i = 0; i < PACK; ++i) {
      const int64_t j = column + i < out.columns ? column + i : out.columns - 1;
      const float h = sums[i] + static_cast<float>(bias[j]);
      const float active = GATED ? silu(h) * (sums[WARP_TILE / 2 + i] + static_cast<float>(bias[out.columns + j])) : gelu(h);
      reinterpret_cast<T*>(&pack)[i] = static_cast<T>(active + static_cast<float>(reinterpret_cast<const T*>(&added)[i]));
    }
    store_pack(out, row, column, pack);
  }
};

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// A warp's share of one slice: both factors out of shared memory, 16 of K at a time. With a gate the second half of its fragments
// is of the other part, for the same columns.
template <bool GATED, typename T>
__device__ void multiply(Sums (&sums)[FRAGMENTS][FRAGMENTS], const T* a_rows, const T* b_rows) {
#pragma unroll
  for (int l = 0; l < SLICE; l += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[FRAGMENTS];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right[FRAGMENTS];
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) wmma::load_matrix_sync(left[i], a_rows + 16 * i * STEP + l, STEP);
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) {
      const int row = GATED ? j / 2 * (TILE_N / 2) + j % 2 * 16 : 16 * j;
      wmma::load_matrix_sync(right[j], b_rows + row * STEP + l, STEP);
    }
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
      for (int j = 0; j < FRAGMENTS; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
  }
}

// CUDA does not say which lane holds which sum of a fragment: sixteen rows at a time go out through the warp's own floats.
template <bool GATED, typename T>
__device__ void finish(const Epilogue<T>& epilogue, const Sums (&sums)[FRAGMENTS][FRAGMENTS], int64_t row, int64_t column,
                       float* floats) {
  constexpr int PACKS = WARP_TILE / PACK / (GATED ? 2 : 1);  // Of a row.
#pragma unroll
  for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) {
      wmma::store_matrix_sync(floats + 16 * j, sums[i][j], OUT_STEP, wmma::mem_row_major);
    }
    __syncwarp();
    for (int pack = threadIdx.x % 32; pack < 16 * PACKS; pack += 32) {
      const int r = pack / PACKS, s = pack % PACKS * PACK;
      const int64_t own_row = row + 16 * i + r;
      if (epilogue.out.has(own_row, column + s)) epilogue.template finish<GATED>(own_row, column + s, floats + r * OUT_STEP + s);
    }
    __syncwarp();
  }
}

// The tile of a block: column by column inside a group of GROUP rows of tiles, so that blocks which run together share both factors.
__device__ int2 tile_of(int block, int tiles_m, int tiles_n) {
  const int first = block / (GROUP * tiles_n) * GROUP;
  const int height = min(tiles_m - first, GROUP);
  const int within = block % (GROUP * tiles_n);
  return {first + within % height, within / height};
}

template <bool GATED, typename T>
__global__ void __launch_bounds__(THREADS) gemm_kernel(Matrix<const T> a, Matrix<const T> b, Epilogue<T> epilogue) {
  constexpr int COLUMNS = GATED ? TILE_N / 2 : TILE_N;  // Of out.
  extern __shared__ uint4 shared[];
  T* const slices = reinterpret_cast<T*>(shared);
  const int64_t n = epilogue.out.columns;
  const int2 tile = tile_of(blockIdx.x, tiles(a.rows, TILE_M), tiles(n, COLUMNS));
  const int64_t first_row = static_cast<int64_t>(tile.x) * TILE_M, first_column = static_cast<int64_t>(tile.y) * COLUMNS;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARPS_ACROSS * WARP_TILE, warp_column = warp % WARPS_ACROSS * (COLUMNS / WARPS_ACROSS);
  const bool works = epilogue.out.has(first_row + warp_row, first_column + warp_column);
  uint4 a_packs[PACKS_A], b_packs[PACKS_B];
  Sums sums[FRAGMENTS][FRAGMENTS];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }

  const int r = threadIdx.x / (SLICE / PACK), l = threadIdx.x % (SLICE / PACK) * PACK;
  constexpr int ROWS = THREADS / (SLICE / PACK);  // That all threads together load at once.
  const auto fetch = [&](int64_t start) {
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) a_packs[i] = load_pack(a, first_row + r + i * ROWS, start + l);
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) {
      const int64_t part = (r + i * ROWS) / COLUMNS, column = first_column + (r + i * ROWS) % COLUMNS;
      b_packs[i] = load_pack(b, column < n ? part * n + column : b.rows, start + l);
    }
  };
  const auto put = [&](T* slice) {
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) *reinterpret_cast<uint4*>(slice + (r + i * ROWS) * STEP + l) = a_packs[i];
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) *reinterpret_cast<uint4*>(slice + (TILE_M + r + i * ROWS) * STEP + l) = b_packs[i];
  };

  fetch(0);
  put(slices);
  __syncthreads();
  int buffer = 0;
  for (int64_t start = 0; start < a.columns; start += SLICE, buffer ^= 1) {
    const bool more = start + SLICE < a.columns;
    if (more) fetch(start + SLICE);
    const T* const slice = slices + buffer * BUFFER;
    if (works) multiply<GATED>(sums, slice + warp_row * STEP, slice + (TILE_M + warp_column) * STEP);
    if (more) put(slices + (buffer ^ 1) * BUFFER);
    __syncthreads();
  }
  float* const floats = reinterpret_cast<float*>(shared) + warp * 16 * OUT_STEP;
  if (works) finish<GATED>(epilogue, sums, first_row + warp_row, first_column + warp_column, floats);
}

template <typename T>
Matrix<T> matrix(T* start, int64_t rows, int64_t columns, int64_t stride) {
  return {start, rows, columns, stride, reinterpret_cast<uintptr_t>(start) % 16 == 0 && stride % PACK == 0};
}

template <bool GATED, typename T>
void launch(const Matrix<const T>& a, const Matrix<const T>& b, const Epilogue<T>& epilogue, cudaStream_t stream) {
  const int blocks = tiles(a.rows, TILE_M) * tiles(epilogue.out.columns, GATED ? TILE_N / 2 : TILE_N);
  cudaFuncSetAttribute(gemm_kernel<GATED, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  gemm_kernel<GATED, T><<<blocks, THREADS, SHARED_BYTES, stream>>>(a, b, epilogue);
}

template <typename T>
void gemm_epilogue(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                   int64_t parts, int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride,
                   int64_t out_row_stride, cudaStream_t stream) {
  const Matrix<const T> left = matrix(a, m, k, a_row_stride), right = matrix(b, parts * n, k, b_row_stride);
  const Epilogue<T> epilogue = {bias, matrix(residual, m, n, residual_row_stride), matrix(out, m, n, out_row_stride)};
  if (parts == 2) {
    launch<true>(left, right, epilogue, stream);
  } else {
    launch<false>(left, right, epilogue, stream);
  }
}
