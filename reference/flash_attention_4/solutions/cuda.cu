// FlashAttention 4, the staff kernel for wmma: attention that rescales seldom, and has exponentials on two units.
//
// A block owns 128 rows of one query head and walks over the keys its last row sees, 64 at a time; each of its four warps
// owns two tiles of 16 rows. A warp multiplies its rows with the keys on the tensor cores and puts the scores into shared
// memory, where every lane takes one row. Two changes against FlashAttention 2:
//
//   - A row's maximum m may be behind. It moves, and the row's sums shrink, only if a score is more than LAG above it, in
//     base 2. Until then probabilities 2^(s - m) are as large as 2^LAG, and the quotient in the end is the same.
//   - Every fourth exponential is computed on the multipliers: x = n + f with |f| <= 1/2, 2^x = 2^n (c0 + c1 f + c2 f^2 +
//     c3 f^3). n comes from adding 1.5 * 2^23, which leaves no bits for a fraction, and is added to the exponent's bits.
//
// A row's probabilities take the place of its scores, and are multiplied with the values. The weighted sums stay in the
// warp's registers. They are rescaled there, and only if some row's maximum moved: CUDA does not say which elements of a
// fragment a lane holds, so a fragment of row numbers is loaded once, and read.
//
// Sources: Zadouri et al., "FlashAttention-4", 2026; Cody and Waite, "Software Manual for the Elementary Functions", 1980;
// Dao, "FlashAttention-2", 2023.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int WARP_ROWS = 32;  // One for each lane: two fragments of 16.
constexpr int ROWS = WARPS * WARP_ROWS;
constexpr int KEYS = 64;
constexpr int PACK = 8;               // 16-bit numbers in 16 bytes.
constexpr int SCORE_STEP = KEYS + 4;  // Padded, so that eight lanes' quadruples lie in different banks.
constexpr float LAG = 8.0f;           // How far a row's maximum may be behind, in base 2.
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

// Heads of rows that follow one another without a gap.
template <typename T>
struct Heads {
  T* start;
  int64_t rows, stride;
  int dim;
  bool aligned;  // Whether whole packs may be read or written at once.

  __device__ T* at(int64_t head, int64_t row, int column) const { return start + (head * rows + row) * stride + column; }
};

struct Shape {
  int q_heads, kv_heads, q_len, kv_len;
  bool causal;
  float scale;  // For scores in base 2.

  // Query heads in groups share a key head.
  __device__ int kv_head(int head) const { return head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads); }
  // How many keys a row sees; the last row sees all.
  __device__ int seen(int row) const { return causal ? max(0, min(row + 1 + kv_len - q_len, kv_len)) : kv_len; }
};

template <typename T, int DIM>
struct Tiles {
  alignas(32) T q[ROWS][DIM + PACK], k[KEYS][DIM + PACK], v[KEYS][DIM + PACK];
  alignas(32) float scores[ROWS][SCORE_STEP];
  float shrink[ROWS];
};

using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Copy rows of one head, from `first` on, into a tile; what is outside of the head becomes zeros.
template <typename T, int DIM, int COUNT>
__device__ void load_rows(T (&tile)[COUNT][DIM + PACK], const Heads<const T>& from, int head, int first) {
  for (int pack = threadIdx.x; pack < COUNT * DIM / PACK; pack += THREADS) {
    const int row = pack / (DIM / PACK), column = pack % (DIM / PACK) * PACK;
    uint4 loaded = {0, 0, 0, 0};
    if (first + row < from.rows) {
      const T* place = from.at(head, first + row, column);
      if (from.aligned && column + PACK <= from.dim) {
        loaded = *reinterpret_cast<const uint4*>(place);
      } else {
        for (int i = 0; i < PACK; ++i) {
          if (column + i < from.dim) reinterpret_cast<T*>(&loaded)[i] = place[i];
        }
      }
    }
    *reinterpret_cast<uint4*>(&tile[row][column]) = loaded;
  }
}

// Scores of a warp's rows with all keys of the block, into shared memory.
template <typename T, int DIM>
__device__ void multiply_keys(Tiles<T, DIM>& tiles, int warp_row) {
  Accumulator scores[2][KEYS / 16];
#pragma unroll
  for (auto& row : scores) {
#pragma unroll
    for (auto& one : row) wmma::fill_fragment(one, 0.0f);
  }
#pragma unroll
  for (int l = 0; l < DIM; l += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> q[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(q[i], &tiles.q[warp_row + 16 * i][l], DIM + PACK);
#pragma unroll
    for (int j = 0; j < KEYS / 16; ++j) {
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> k;
      wmma::load_matrix_sync(k, &tiles.k[16 * j][l], DIM + PACK);
#pragma unroll
      for (int i = 0; i < 2; ++i) wmma::mma_sync(scores[i][j], q[i], k, scores[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < KEYS / 16; ++j) {
      wmma::store_matrix_sync(&tiles.scores[warp_row + 16 * i][16 * j], scores[i][j], SCORE_STEP, wmma::mem_row_major);
    }
  }
}

// 2^x without the special function unit, for x <= LAG; 2^-126 for what is smaller.
__device__ float power(float x) {
  x = fmaxf(x, -126.0f);
  const float shifted = x + 12582912.0f, rest = x - (shifted - 12582912.0f);
  const float cubic = fmaf(fmaf(fmaf(0.05517167f, rest, 0.24261114f), rest, 0.69326097f), rest, 0.99992806f);
  return __int_as_float(__float_as_int(cubic) + (__float_as_int(shifted) << 23));
}

// What a lane knows of its row.
struct Row {
  float largest = -INFINITY, total = 0.0f;

  // Take in the first `seen` of a block's scores, and leave probabilities in their place; what the sums have to shrink by.
  template <typename T>
  __device__ float take(float* scores, int seen, float scale) {
    float larger = largest;
#pragma unroll
    for (int j = 0; j < KEYS; j += 4) {
      const float4 four = *reinterpret_cast<const float4*>(scores + j);
      if (j < seen) larger = fmaxf(larger, four.x * scale);
      if (j + 1 < seen) larger = fmaxf(larger, four.y * scale);
      if (j + 2 < seen) larger = fmaxf(larger, four.z * scale);
      if (j + 3 < seen) larger = fmaxf(larger, four.w * scale);
    }
    if (!(larger > largest + LAG)) larger = largest;
    // A row that has seen no key yet has -inf, and -inf - -inf is no number.
    const float subtracted = larger == -INFINITY ? 0.0f : larger;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < KEYS; j += PACK) {
      float eight[PACK];
      *reinterpret_cast<float4*>(eight) = *reinterpret_cast<const float4*>(scores + j);
      *reinterpret_cast<float4*>(eight + 4) = *reinterpret_cast<const float4*>(scores + j + 4);
      alignas(16) T rounded[PACK];
#pragma unroll
      for (int i = 0; i < PACK; ++i) {
        const float x = fmaf(eight[i], scale, -subtracted), power_of_2 = i % 4 == 3 ? power(x) : exp2f(x);
        const float p = j + i < seen ? power_of_2 : 0.0f;
        sum += p;
        rounded[i] = static_cast<T>(p);
      }
      // Half as wide as scores: it never covers one that is still to be read.
      *reinterpret_cast<uint4*>(reinterpret_cast<T*>(scores) + j) = *reinterpret_cast<const uint4*>(rounded);
    }
    const float shrink = exp2f(largest - subtracted);
    total = total * shrink + sum;
    largest = larger;
    return shrink;
  }
};

// Multiply every row of the sums by its factor; `row_of` says which row an element is in.
template <int COUNT>
__device__ void scale_rows(Accumulator (&sums)[2][COUNT], const float* factors, const int (&row_of)[8]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float factor[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) factor[e] = factors[16 * i + row_of[e]];
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
#pragma unroll
      for (int e = 0; e < 8; ++e) sums[i][j].x[e] *= factor[e];
    }
  }
}

// Add probabilities times values to a warp's sums.
template <typename T, int DIM>
__device__ void multiply_values(const Tiles<T, DIM>& tiles, int warp_row, Accumulator (&sums)[2][DIM / 16]) {
  const T* probabilities = reinterpret_cast<const T*>(tiles.scores[warp_row]);
  constexpr int STEP = SCORE_STEP * sizeof(float) / sizeof(T);
#pragma unroll
  for (int l = 0; l < KEYS; l += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> p[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(p[i], probabilities + 16 * i * STEP + l, STEP);
#pragma unroll
    for (int j = 0; j < DIM / 16; ++j) {
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> v;
      wmma::load_matrix_sync(v, &tiles.v[l][16 * j], DIM + PACK);
#pragma unroll
      for (int i = 0; i < 2; ++i) wmma::mma_sync(sums[i][j], p[i], v, sums[i][j]);
    }
  }
}

// Write a warp's rows, KEYS columns at a time, by way of the memory of its scores.
template <typename T, int DIM>
__device__ void store_rows(Tiles<T, DIM>& tiles, int warp_row, const Accumulator (&sums)[2][DIM / 16],
                           const Heads<T>& out, int head, int first) {
#pragma unroll
  for (int start = 0; start < DIM; start += KEYS) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < KEYS / 16; ++j) {
        wmma::store_matrix_sync(&tiles.scores[warp_row + 16 * i][16 * j], sums[i][start / 16 + j], SCORE_STEP,
                                wmma::mem_row_major);
      }
    }
    __syncwarp();
    for (int pack = threadIdx.x % 32; pack < WARP_ROWS * KEYS / PACK; pack += 32) {
      const int row = pack / (KEYS / PACK), within = pack % (KEYS / PACK) * PACK, column = start + within;
      if (first + row >= out.rows) continue;
      alignas(16) T rounded[PACK];
      for (int i = 0; i < PACK; ++i) rounded[i] = static_cast<T>(tiles.scores[warp_row + row][within + i]);
      T* place = out.at(head, first + row, column);
      if (out.aligned && column + PACK <= out.dim) {
        *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(rounded);
      } else {
        for (int i = 0; i < PACK; ++i) {
          if (column + i < out.dim) place[i] = rounded[i];
        }
      }
    }
    __syncwarp();
  }
}

template <typename T, int DIM>
__global__ void __launch_bounds__(THREADS, 2)
    attend(Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> out, float* lse, float* row_max,
           Shape shape) {
  extern __shared__ __align__(32) unsigned char memory[];
  auto& tiles = *reinterpret_cast<Tiles<T, DIM>*>(memory);
  // The last tiles see the most keys: they come first, so that short ones fill the gaps at the end.
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * ROWS, head = static_cast<int>(blockIdx.y);
  const int kv_head = shape.kv_head(head), lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * WARP_ROWS;
  const int row = first + warp_row + lane;
  const int end = shape.seen(min(first + ROWS, shape.q_len) - 1);
  const int warp_end = first + warp_row < shape.q_len ? shape.seen(min(first + warp_row + WARP_ROWS, shape.q_len) - 1) : 0;

  for (int column = 0; column < 16; ++column) tiles.scores[warp_row + lane][column] = static_cast<float>(lane);
  __syncwarp();
  Accumulator numbers, sums[2][DIM / 16];
  wmma::load_matrix_sync(numbers, tiles.scores[warp_row], SCORE_STEP, wmma::mem_row_major);
  int row_of[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) row_of[e] = static_cast<int>(numbers.x[e]);
#pragma unroll
  for (auto& row_of_sums : sums) {
#pragma unroll
    for (auto& sum : row_of_sums) wmma::fill_fragment(sum, 0.0f);
  }

  load_rows<T, DIM>(tiles.q, q, head, first);
  Row mine;
  for (int start = 0; start < end; start += KEYS) {
    __syncthreads();  // All warps are done with the last block of keys and values.
    load_rows<T, DIM>(tiles.k, k, kv_head, start);
    load_rows<T, DIM>(tiles.v, v, kv_head, start);
    __syncthreads();
    if (start >= warp_end) continue;
    multiply_keys<T, DIM>(tiles, warp_row);
    __syncwarp();
    const int seen = min(shape.seen(min(row, shape.q_len - 1)) - start, KEYS);
    const float shrink = mine.take<T>(tiles.scores[warp_row + lane], seen, shape.scale);
    tiles.shrink[warp_row + lane] = shrink;
    const bool moved = __any_sync(0xffffffffu, shrink != 1.0f);
    if (moved) scale_rows(sums, &tiles.shrink[warp_row], row_of);
    multiply_values<T, DIM>(tiles, warp_row, sums);
    __syncwarp();
  }

  if (row < shape.q_len) {
    const float natural = mine.total > 0.0f ? (mine.largest + log2f(mine.total)) * LN_2 : -INFINITY;
    lse[static_cast<int64_t>(head) * shape.q_len + row] = natural;
    row_max[static_cast<int64_t>(head) * shape.q_len + row] = mine.largest;
  }
  tiles.shrink[warp_row + lane] = mine.total > 0.0f ? 1.0f / mine.total : 0.0f;
  __syncwarp();
  scale_rows(sums, &tiles.shrink[warp_row], row_of);
  store_rows<T, DIM>(tiles, warp_row, sums, out, head, first + warp_row);
}

// --- launching --------------------------------------------------------------------------------------------------------

template <typename T>
Heads<T> heads_of(T* start, int64_t rows, int64_t stride, int64_t dim) {
  const bool aligned = reinterpret_cast<uintptr_t>(start) % 16 == 0 && stride % PACK == 0;
  return {start, rows, stride, static_cast<int>(dim), aligned};
}

template <typename T, int DIM>
void launch(Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> out, float* lse, float* row_max, Shape shape,
            int64_t heads, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((shape.q_len + ROWS - 1) / ROWS), static_cast<unsigned>(heads));
  cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Tiles<T, DIM>));
  attend<T, DIM><<<blocks, THREADS, sizeof(Tiles<T, DIM>), stream>>>(q, k, v, out, lse, row_max, shape);
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, float* row_max, int64_t batch, int64_t q_heads,
               int64_t kv_heads, int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale,
               int64_t q_row_stride, int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const Shape shape = {static_cast<int>(q_heads), static_cast<int>(kv_heads), static_cast<int>(q_len),
                       static_cast<int>(kv_len),  causal != 0,                scale * LOG2_E};
  const auto queries = heads_of(q, q_len, q_row_stride, dim), keys = heads_of(k, kv_len, k_row_stride, dim);
  const auto values = heads_of(v, kv_len, v_row_stride, dim);
  const auto answers = heads_of(out, q_len, out_row_stride, dim);
  const auto chosen = dim <= 64 ? launch<T, 64> : launch<T, 128>;
  chosen(queries, keys, values, answers, lse, row_max, shape, batch * q_heads, stream);
}
