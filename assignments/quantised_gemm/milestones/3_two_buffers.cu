// Quantised GEMM, third milestone: integer tensor cores by wmma, 128 x 256 of out for a block, 64 x 64 for a warp, two buffers.
//
// A slice of 64 of K lies in shared memory in four planes of 16 of K: a row of a plane is one pack of 16 bytes, and the sixteen rows of a
// fragment follow one another. (wmma wants fragments at multiples of 32 bytes, which rows of 64 bytes do not give.) While the warps
// multiply out of one buffer, each thread has its packs of the next slice in flight from memory to registers. What is left: mma.sync takes
// its factors from registers, a warp at a time, and waits for each result.
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 64;
constexpr int THREADS = 256;
constexpr int GROUP = 16;                   // Rows of tiles that are walked through together.
constexpr int FRAGMENTS = 4;                // Of a warp, in both directions.
constexpr int WARP_TILE = 16 * FRAGMENTS;   // 64 rows and 64 columns; two warps share the columns, four the rows.
constexpr int WARPS_ACROSS = TILE_N / WARP_TILE;
constexpr int PACK = 16;                    // Numbers in 16 bytes.
constexpr int PLANES = SLICE / PACK;
constexpr int PLANE = (TILE_M + TILE_N) * PACK + 32;  // Padded, so that the planes' packs of a row lie in different banks.
constexpr int BUFFER = PLANES * PLANE;      // Numbers of one slice of both factors.
constexpr int OUT_STEP = WARP_TILE + 4;     // Padded, for sums on their way out.
constexpr int ROWS = THREADS / PLANES;      // That all threads together load at once.
constexpr int PACKS_A = TILE_M / ROWS, PACKS_B = TILE_N / ROWS;
constexpr int SHARED_BYTES = 2 * BUFFER;

__host__ __device__ int tiles(int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); }

template <typename T>
struct Matrix {
  T* start;
  int64_t rows, columns, stride;
  bool aligned;  // Whether every row begins at a multiple of 16 bytes.

  __device__ bool has(int64_t row, int64_t column) const { return row < rows && column < columns; }
  __device__ T* at(int64_t row, int64_t column) const { return start + row * stride + column; }
};

struct Scales {
  const float *a, *b;
};

// Sixteen neighbours of a row: in one load where they may be, and zeros for what is outside of the matrix.
__device__ uint4 load_pack(const Matrix<const int8_t>& from, int64_t row, int64_t column) {
  if (from.aligned && from.has(row, column + PACK - 1)) return *reinterpret_cast<const uint4*>(from.at(row, column));
  uint4 pack = {0, 0, 0, 0};
  for (int i = 0; i < PACK; ++i) {
    if (from.has(row, column + i)) reinterpret_cast<int8_t*>(&pack)[i] = *from.at(row, column + i);
  }
  return pack;
}

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, int>;

// A warp's share of one slice: both factors out of shared memory, a plane at a time.
__device__ void multiply(Sums (&sums)[FRAGMENTS][FRAGMENTS], const int8_t* a_rows, const int8_t* b_rows) {
#pragma unroll
  for (int plane = 0; plane < PLANES; ++plane) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left[FRAGMENTS];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right[FRAGMENTS];
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) wmma::load_matrix_sync(left[i], a_rows + plane * PLANE + 16 * i * PACK, PACK);
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) wmma::load_matrix_sync(right[j], b_rows + plane * PLANE + 16 * j * PACK, PACK);
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
      for (int j = 0; j < FRAGMENTS; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
  }
}

// Which lane holds which sum of a fragment is not said anywhere: sixteen rows at a time go out through the warp's own memory, where a
// lane gets every 32nd sum and meets its scales.
__device__ void store(const Matrix<float>& out, const Scales& scales, const Sums (&sums)[FRAGMENTS][FRAGMENTS], int64_t row,
                      int64_t column, int* own) {
#pragma unroll
  for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) wmma::store_matrix_sync(own + 16 * j, sums[i][j], OUT_STEP, wmma::mem_row_major);
    __syncwarp();
    for (int at = threadIdx.x % 32; at < 16 * WARP_TILE; at += 32) {
      const int64_t r = row + 16 * i + at / WARP_TILE, c = column + at % WARP_TILE;
      if (!out.has(r, c)) continue;
      const float sum = static_cast<float>(own[at / WARP_TILE * OUT_STEP + at % WARP_TILE]);
      *out.at(r, c) = sum * scales.a[r] * scales.b[c];
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

__global__ void __launch_bounds__(THREADS)
    gemm_kernel(Matrix<const int8_t> a, Matrix<const int8_t> b, Scales scales, Matrix<float> out) {
  extern __shared__ uint4 shared[];
  int8_t* const slices = reinterpret_cast<int8_t*>(shared);
  const int2 tile = tile_of(blockIdx.x, tiles(out.rows, TILE_M), tiles(out.columns, TILE_N));
  const int64_t first_row = static_cast<int64_t>(tile.x) * TILE_M, first_column = static_cast<int64_t>(tile.y) * TILE_N;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARPS_ACROSS * WARP_TILE, warp_column = warp % WARPS_ACROSS * WARP_TILE;
  const bool works = out.has(first_row + warp_row, first_column + warp_column);
  uint4 a_packs[PACKS_A], b_packs[PACKS_B];
  Sums sums[FRAGMENTS][FRAGMENTS];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0);
  }

  const int r = threadIdx.x / PLANES, plane = threadIdx.x % PLANES;
  const auto fetch = [&](int64_t start) {
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) a_packs[i] = load_pack(a, first_row + r + i * ROWS, start + plane * PACK);
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) b_packs[i] = load_pack(b, first_column + r + i * ROWS, start + plane * PACK);
  };
  const auto put = [&](int8_t* slice) {
    uint4* const to = reinterpret_cast<uint4*>(slice + plane * PLANE);
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) to[r + i * ROWS] = a_packs[i];
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) to[TILE_M + r + i * ROWS] = b_packs[i];
  };

  fetch(0);
  put(slices);
  __syncthreads();
  int buffer = 0;
  for (int64_t start = 0; start < a.columns; start += SLICE, buffer ^= 1) {
    const bool more = start + SLICE < a.columns;
    if (more) fetch(start + SLICE);
    const int8_t* const slice = slices + buffer * BUFFER;
    if (works) multiply(sums, slice + warp_row * PACK, slice + (TILE_M + warp_column) * PACK);
    if (more) put(slices + (buffer ^ 1) * BUFFER);
    __syncthreads();
  }
  int* const own = reinterpret_cast<int*>(shared) + warp * 16 * OUT_STEP;
  if (works) store(out, scales, sums, first_row + warp_row, first_column + warp_column, own);
}

template <typename T>
Matrix<T> matrix(T* start, int64_t rows, int64_t columns, int64_t stride) {
  return {start, rows, columns, stride, reinterpret_cast<uintptr_t>(start) % 16 == 0 && stride * sizeof(T) % 16 == 0};
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const int blocks = tiles(m, TILE_M) * tiles(n, TILE_N);
  cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  gemm_kernel<<<blocks, THREADS, SHARED_BYTES, stream>>>(matrix(a, m, k, a_row_stride), matrix(b, n, k, b_row_stride),
                                                         Scales{a_scale, b_scale}, matrix(out, m, n, out_row_stride));
}
