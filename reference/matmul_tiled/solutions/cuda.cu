// Tiled matmul, the staff kernels: c[i, j] = sum_l a[i, l] * b[l, j], summed in float32.
//
// A block computes a tile of 128 x 128 of c and walks over K in slices. A slice costs 256 * DEPTH loads and gives
// 2 * 128 * 128 * DEPTH operations: every element that is loaded is used 128 times, out of shared memory.
//
// float32 is multiplied by ordinary arithmetic: each of 256 threads holds 8 x 8 sums in registers, so that 16 loads from shared
// memory feed 64 multiplications. 16-bit matrices go to the tensor cores through wmma: each of 8 warps holds 4 x 2 fragments of
// 16 x 16 sums; while the warps multiply one slice, the next is on its way from memory into registers, and from there into
// the other of two buffers, so that one barrier for each slice is enough.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int TILE = 128;
constexpr int THREADS = 256;

template <typename T>
struct Matrix {
  T* start;
  int64_t rows, columns, stride;

  __device__ bool has(int64_t row, int64_t column) const { return row < rows && column < columns; }
  __device__ T* at(int64_t row, int64_t column) const { return start + row * stride + column; }
};

// --- float32: eight by eight sums for each thread ---------------------------------------------------------------------

constexpr int DEPTH = 16;
constexpr int SUMS = 8;  // In each direction; a thread's are 16 apart, so that neighbours read neighbouring elements.

__global__ void __launch_bounds__(THREADS)
    matmul_floats(Matrix<const float> a, Matrix<const float> b, Matrix<float> c) {
  __shared__ float a_slice[DEPTH][TILE + 1], b_slice[DEPTH][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  float sums[SUMS][SUMS] = {};
  for (int64_t start = 0; start < a.columns; start += DEPTH) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int r = i / DEPTH, l = i % DEPTH;
      a_slice[l][r] = a.has(first_row + r, start + l) ? *a.at(first_row + r, start + l) : 0.0f;
    }
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
      const int l = i / TILE, j = i % TILE;
      b_slice[l][j] = b.has(start + l, first_column + j) ? *b.at(start + l, first_column + j) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < DEPTH; ++l) {
      float left[SUMS], right[SUMS];
#pragma unroll
      for (int i = 0; i < SUMS; ++i) left[i] = a_slice[l][row + 16 * i];
#pragma unroll
      for (int j = 0; j < SUMS; ++j) right[j] = b_slice[l][column + 16 * j];
#pragma unroll
      for (int i = 0; i < SUMS; ++i) {
#pragma unroll
        for (int j = 0; j < SUMS; ++j) sums[i][j] += left[i] * right[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {
#pragma unroll
    for (int j = 0; j < SUMS; ++j) {
      const int64_t r = first_row + row + 16 * i, s = first_column + column + 16 * j;
      if (c.has(r, s)) *c.at(r, s) = sums[i][j];
    }
  }
}

// --- 16 bits: tensor cores --------------------------------------------------------------------------------------------

constexpr int SLICE = 32;
constexpr int PACK = 8;                               // 16-bit numbers in 16 bytes.
constexpr int A_STEP = SLICE + 8, B_STEP = TILE + 8;  // Padded, so that the rows of a fragment lie in different banks.
constexpr int PACKS = TILE * SLICE / PACK / THREADS;  // Of each slice, for each thread.
constexpr int FRAGMENTS_M = 4, FRAGMENTS_N = 2;       // Of a warp; two warps share the rows, four the columns.

// Eight neighbours of a row; whole packs in one load where `aligned`, what is outside of the matrix as zeros.
template <typename T>
__device__ uint4 load_pack(const Matrix<const T>& from, int64_t row, int64_t column, bool aligned) {
  if (aligned && row < from.rows && column + PACK <= from.columns) return *reinterpret_cast<const uint4*>(from.at(row, column));
  uint4 pack = {0, 0, 0, 0};
  for (int i = 0; i < PACK; ++i) {
    if (from.has(row, column + i)) reinterpret_cast<T*>(&pack)[i] = *from.at(row, column + i);
  }
  return pack;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    matmul_tensor_cores(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool aligned) {
  __shared__ alignas(128) T a_slice[2][TILE][A_STEP], b_slice[2][SLICE][B_STEP];
  __shared__ alignas(128) float way_out[THREADS / 32][16][16];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 4 * 16 * FRAGMENTS_M, warp_column = warp % 4 * 16 * FRAGMENTS_N;
  uint4 a_packs[PACKS], b_packs[PACKS];
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[FRAGMENTS_M][FRAGMENTS_N];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }

  const auto fetch = [&](int64_t start) {
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      const int pack = i * THREADS + threadIdx.x;
      a_packs[i] = load_pack(a, first_row + pack / (SLICE / PACK), start + pack % (SLICE / PACK) * PACK, aligned);
      b_packs[i] = load_pack(b, start + pack / (TILE / PACK), first_column + pack % (TILE / PACK) * PACK, aligned);
    }
  };
  const auto put = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < PACKS; ++i) {
      const int pack = i * THREADS + threadIdx.x;
      *reinterpret_cast<uint4*>(&a_slice[buffer][pack / (SLICE / PACK)][pack % (SLICE / PACK) * PACK]) = a_packs[i];
      *reinterpret_cast<uint4*>(&b_slice[buffer][pack / (TILE / PACK)][pack % (TILE / PACK) * PACK]) = b_packs[i];
    }
  };

  fetch(0);
  put(0);
  __syncthreads();
  int buffer = 0;
  for (int64_t start = 0; start < a.columns; start += SLICE, buffer ^= 1) {
    const bool more = start + SLICE < a.columns;
    if (more) fetch(start + SLICE);
#pragma unroll
    for (int l = 0; l < SLICE; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[FRAGMENTS_M];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[FRAGMENTS_N];
#pragma unroll
      for (int i = 0; i < FRAGMENTS_M; ++i) {
        wmma::load_matrix_sync(left[i], &a_slice[buffer][warp_row + 16 * i][l], A_STEP);
      }
#pragma unroll
      for (int j = 0; j < FRAGMENTS_N; ++j) {
        wmma::load_matrix_sync(right[j], &b_slice[buffer][l][warp_column + 16 * j], B_STEP);
      }
#pragma unroll
      for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
      }
    }
    if (more) put(buffer ^ 1);
    __syncthreads();
  }

  // Which lane holds which sum of a fragment is not said anywhere: it goes out through shared memory.
  for (int i = 0; i < FRAGMENTS_M; ++i) {
    for (int j = 0; j < FRAGMENTS_N; ++j) {
      wmma::store_matrix_sync(&way_out[warp][0][0], sums[i][j], 16, wmma::mem_row_major);
      __syncwarp();
      for (int element = lane; element < 256; element += 32) {
        const int64_t row = first_row + warp_row + 16 * i + element / 16;
        const int64_t column = first_column + warp_column + 16 * j + element % 16;
        if (c.has(row, column)) *c.at(row, column) = static_cast<T>(way_out[warp][element / 16][element % 16]);
      }
      __syncwarp();
    }
  }
}

// --- launchers --------------------------------------------------------------------------------------------------------

dim3 tiles(int64_t m, int64_t n) {
  return dim3(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
}

void matmul(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
            int64_t b_row_stride, int64_t c_row_stride, cudaStream_t stream) {
  const Matrix<const float> left = {a, m, k, a_row_stride}, right = {b, k, n, b_row_stride};
  matmul_floats<<<tiles(m, n), THREADS, 0, stream>>>(left, right, Matrix<float>{c, m, n, c_row_stride});
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const bool aligned = (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0 &&
                       (a_row_stride | b_row_stride) % PACK == 0;
  const Matrix<const T> left = {a, m, k, a_row_stride}, right = {b, k, n, b_row_stride};
  matmul_tensor_cores<<<tiles(m, n), THREADS, 0, stream>>>(left, right, Matrix<T>{c, m, n, c_row_stride}, aligned);
}
