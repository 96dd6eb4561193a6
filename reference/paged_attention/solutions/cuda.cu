// Paged attention, the staff kernel: every sequence's keys in pieces of equal length, their results merged at the end.
//
// Lengths differ, and only the device knows them. So the keys that each sequence's rows see are cut into pieces, and the
// pieces of all sequences are numbered through; the host launches as many blocks as there can be at most, and those without
// a piece end at once. A block has up to eight rows of one key head: the group of query heads that share it, times the
// queries. Its two warps take blocks of 32 keys in turn, each for itself: a warp copies the next keys and values into a ring of
// three stages while it works on one, and no barrier of the block stands in the loop. Each lane looks up the page of one key.
// Scores of 8 rows × 32 keys are one accumulator of the tensor cores; four lanes share a row's softmax, as in rung 26. At the
// end the warps' sums are merged, then, by a second kernel, those of a row's pieces:
//
//     lse = log Σ exp(lse_i),    out = Σ exp(lse_i - lse) · out_i.
//
// Places without a key hold NaN: they are never copied, and zeros take their place, because 0 · NaN is NaN.
//
// Sources: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference", 2023; Ye et al., "FlashInfer", 2025, for
// the table of pages; Kwon et al., "Efficient memory management for large language model serving with PagedAttention", 2023.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int WARPS = 3, THREADS = 32 * WARPS;
constexpr int ROWS = 8, KEYS = 32;    // Of one product of the tensor cores; a lane looks after one key.
constexpr int STAGES = 2;             // Blocks of keys in a warp's ring.
constexpr int PACK = 8;               // 16-bit numbers in 16 bytes.
constexpr int SCORE_STEP = KEYS + 4;  // Padded, so that rows lie in different banks.
constexpr int MERGE_WARPS = 8, MOST_DIM = 128;
constexpr int PIECES_PER_MULTIPROCESSOR = 16;
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

struct Shape {
  const int32_t *indptr, *indices, *last_page_len;
  int batch, q_len, q_heads, kv_heads, dim, page_size, window, piece;
  float scale;  // For scores in base 2.

  __device__ int kv_len(int sequence) const {
    const int pages = indptr[sequence + 1] - indptr[sequence];
    return pages > 0 ? (pages - 1) * page_size + last_page_len[sequence] : 0;
  }
  // The first key that any row of a sequence sees.
  __device__ int first(int length) const { return window > 0 ? max(length - q_len + 1 - window, 0) : 0; }
  __device__ int pieces(int sequence) const {
    const int length = kv_len(sequence);
    return (length - first(length) + piece - 1) / piece;
  }
};

__device__ int sum_of_warp(int value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

struct Found {
  int sequence, within;  // Which piece of its sequence it is; the sequence is `batch` if there is none.
};

// The sequence that a piece belongs to: lanes look at 32 sequences at a time, and add up how many pieces those have.
__device__ Found find(const Shape& shape, int number) {
  const int lane = threadIdx.x % 32;
  for (int base = 0; base < shape.batch; base += 32) {
    const int mine = base + lane < shape.batch ? shape.pieces(base + lane) : 0;
    int until = mine;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(ALL_LANES, until, step);
      if (lane >= step) until += other;
    }
    const unsigned beyond = __ballot_sync(ALL_LANES, number < until);
    if (beyond != 0) {
      const int found = __ffs(static_cast<int>(beyond)) - 1;
      return {base + found, number - __shfl_sync(ALL_LANES, until - mine, found)};
    }
    number -= __shfl_sync(ALL_LANES, until, 31);
  }
  return {shape.batch, 0};
}

template <typename T, int DIM>
struct Ring {
  alignas(32) T k[STAGES][KEYS][DIM + PACK], v[STAGES][KEYS][DIM + PACK];
  alignas(32) float scores[ROWS][SCORE_STEP];
  alignas(32) T probabilities[ROWS][KEYS + PACK];
  float shrink[ROWS];
};

template <typename T, int DIM>
struct Tiles {
  alignas(32) T q[ROWS][DIM + PACK];
  Ring<T, DIM> rings[WARPS];
  float largest[WARPS][ROWS], total[WARPS][ROWS];
};

template <typename T>
struct Cache {
  const T *k, *v;
  bool aligned;  // Whether whole packs may be copied at once.
};

// Start copying the rows of 32 keys: `place` is where this lane's key begins in the cache, -1 where there is none.
template <typename T, int DIM>
__device__ void copy_keys(Ring<T, DIM>& ring, int stage, const Cache<T>& cache, int64_t place, int dim) {
#pragma unroll
  for (int i = 0; i < KEYS * DIM / PACK / 32; ++i) {
    const int pack = 32 * i + static_cast<int>(threadIdx.x % 32);
    const int row = pack / (DIM / PACK), column = pack % (DIM / PACK) * PACK;
    const int64_t start = __shfl_sync(ALL_LANES, place, row);
    T *k = &ring.k[stage][row][column], *v = &ring.v[stage][row][column];
    if (cache.aligned && start >= 0 && column < dim) {
      __pipeline_memcpy_async(k, cache.k + start + column, 16);
      __pipeline_memcpy_async(v, cache.v + start + column, 16);
    } else {
      for (int e = 0; e < PACK; ++e) {
        const bool there = start >= 0 && column + e < dim;
        k[e] = there ? cache.k[start + column + e] : static_cast<T>(0.0f);
        v[e] = there ? cache.v[start + column + e] : static_cast<T>(0.0f);
      }
    }
  }
}

using Accumulator = wmma::fragment<wmma::accumulator, ROWS, KEYS, 16, float>;

// Scores of the block's rows with 32 keys, into shared memory.
template <typename T, int DIM>
__device__ void multiply_keys(const T (&q)[ROWS][DIM + PACK], Ring<T, DIM>& ring, int stage) {
  Accumulator scores;
  wmma::fill_fragment(scores, 0.0f);
#pragma unroll
  for (int l = 0; l < DIM; l += 16) {
    wmma::fragment<wmma::matrix_a, ROWS, KEYS, 16, T, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, ROWS, KEYS, 16, T, wmma::col_major> right;
    wmma::load_matrix_sync(left, &q[0][l], DIM + PACK);
    wmma::load_matrix_sync(right, &ring.k[stage][0][l], DIM + PACK);
    wmma::mma_sync(scores, left, right, scores);
  }
  wmma::store_matrix_sync(&ring.scores[0][0], scores, SCORE_STEP, wmma::mem_row_major);
}

// Add probabilities times values to a warp's sums.
template <typename T, int DIM>
__device__ void multiply_values(const Ring<T, DIM>& ring, int stage, Accumulator (&sums)[DIM / KEYS]) {
#pragma unroll
  for (int l = 0; l < KEYS; l += 16) {
    wmma::fragment<wmma::matrix_a, ROWS, KEYS, 16, T, wmma::row_major> left;
    wmma::load_matrix_sync(left, &ring.probabilities[0][l], KEYS + PACK);
#pragma unroll
    for (int j = 0; j < DIM / KEYS; ++j) {
      wmma::fragment<wmma::matrix_b, ROWS, KEYS, 16, T, wmma::row_major> right;
      wmma::load_matrix_sync(right, &ring.v[stage][l][KEYS * j], DIM + PACK);
      wmma::mma_sync(sums[j], left, right, sums[j]);
    }
  }
}

// What a lane knows of its row: four lanes share one, and each has every fourth key.
struct Row {
  int last, earliest;  // It sees the keys up to `last` that come after `earliest`.
  float largest = -INFINITY, total = 0.0f;

  // Take in the scores of 32 keys, `first` and those after it, and leave probabilities; what the sums have to shrink by.
  template <typename T>
  __device__ float take(const float* scores, T* probabilities, int first, float scale) {
    const int part = threadIdx.x % 4;
    float mine[KEYS / 4], larger = largest;
#pragma unroll
    for (int i = 0; i < KEYS / 4; ++i) {
      const int key = first + 4 * i + part;
      mine[i] = key <= last && key > earliest ? scores[4 * i + part] * scale : -INFINITY;
      larger = fmaxf(larger, mine[i]);
    }
    larger = fmaxf(larger, __shfl_xor_sync(ALL_LANES, larger, 1));
    larger = fmaxf(larger, __shfl_xor_sync(ALL_LANES, larger, 2));
    // A row that has seen no key yet has -inf, and -inf - -inf is no number.
    const float subtracted = larger == -INFINITY ? 0.0f : larger, shrink = exp2f(largest - subtracted);
    total *= shrink;
#pragma unroll
    for (int i = 0; i < KEYS / 4; ++i) {
      const float p = exp2f(mine[i] - subtracted);
      total += p;
      probabilities[4 * i + part] = static_cast<T>(p);
    }
    largest = larger;
    return shrink;
  }
};

template <typename T, int DIM>
__global__ void __launch_bounds__(THREADS)
    attend(const T* q, Cache<T> cache, float* piece_out, float* piece_lse, Shape shape, int tiles_of_rows) {
  extern __shared__ __align__(32) unsigned char memory[];
  auto& tiles = *reinterpret_cast<Tiles<T, DIM>*>(memory);
  // Neighbours read the same pages: the key heads of a piece lie beside each other.
  const int tile = static_cast<int>(blockIdx.x) % tiles_of_rows;
  const int kv_head = static_cast<int>(blockIdx.x) / tiles_of_rows % shape.kv_heads;
  const int number = static_cast<int>(blockIdx.x) / (tiles_of_rows * shape.kv_heads);
  const Found found = find(shape, number);
  if (found.sequence == shape.batch) return;
  const int kv_len = shape.kv_len(found.sequence), group = shape.q_heads / shape.kv_heads, rows = shape.q_len * group;
  const int start = shape.first(kv_len) + found.within * shape.piece;
  // What no row of this tile sees is not read.
  const int last_query = min((tile * ROWS + ROWS - 1) / group, shape.q_len - 1);
  const int end = min(min(start + shape.piece, kv_len), kv_len - shape.q_len + last_query + 1);
  const int32_t* table = shape.indices + shape.indptr[found.sequence];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Ring<T, DIM>& ring = tiles.rings[warp];

  for (int i = threadIdx.x; i < ROWS * DIM; i += THREADS) {
    const int row = tile * ROWS + i / DIM, column = i % DIM;
    const int64_t query = static_cast<int64_t>(found.sequence) * shape.q_len + row / group;
    const bool there = row < rows && column < shape.dim;
    const int64_t place = (query * shape.q_heads + kv_head * group + row % group) * shape.dim + column;
    tiles.q[i / DIM][column] = there ? q[place] : static_cast<T>(0.0f);
  }
  // CUDA does not say which elements of a fragment a lane holds: a fragment of row numbers is loaded, and read.
  for (int row = 0; row < ROWS; ++row) ring.scores[row][lane] = static_cast<float>(row);
  __syncthreads();
  Accumulator numbers, sums[DIM / KEYS];
  wmma::load_matrix_sync(numbers, &ring.scores[0][0], SCORE_STEP, wmma::mem_row_major);
  int row_of[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) row_of[e] = static_cast<int>(numbers.x[e]);
#pragma unroll
  for (auto& sum : sums) wmma::fill_fragment(sum, 0.0f);

  // Where this lane's key of the warp's block number `block` begins in the cache.
  const auto place_of = [&](int block) -> int64_t {
    const int key = start + (block * WARPS + warp) * KEYS + lane;
    if (key >= end) return -1;
    const int64_t slot = static_cast<int64_t>(table[key / shape.page_size]) * shape.page_size + key % shape.page_size;
    return (slot * shape.kv_heads + kv_head) * shape.dim;
  };
  const auto has = [&](int block) { return start + (block * WARPS + warp) * KEYS < end; };
  for (int block = 0; block < STAGES - 1; ++block) {
    if (has(block)) copy_keys<T, DIM>(ring, block, cache, place_of(block), shape.dim);
    __pipeline_commit();
  }
  int64_t next = place_of(STAGES - 1);

  const int query = (tile * ROWS + lane / 4) / group, last = kv_len - shape.q_len + query;
  Row mine = {tile * ROWS + lane / 4 < rows ? min(last, end - 1) : -1, shape.window > 0 ? last - shape.window : -1};
  for (int block = 0; has(block); ++block) {
    const int stage = block % STAGES, ahead = block + STAGES - 1;
    __pipeline_wait_prior(STAGES - 2);
    __syncwarp();  // This block is there for all lanes, and all are done with the one before.
    if (has(ahead)) copy_keys<T, DIM>(ring, ahead % STAGES, cache, next, shape.dim);
    __pipeline_commit();
    next = place_of(ahead + 1);
    multiply_keys<T, DIM>(tiles.q, ring, stage);
    __syncwarp();
    const int first = start + (block * WARPS + warp) * KEYS;
    const float shrink = mine.take<T>(ring.scores[lane / 4], ring.probabilities[lane / 4], first, shape.scale);
    if (lane % 4 == 0) ring.shrink[lane / 4] = shrink;
    __syncwarp();
    if (__any_sync(ALL_LANES, shrink != 1.0f)) {
#pragma unroll
      for (auto& sum : sums) {
#pragma unroll
        for (int e = 0; e < 8; ++e) sum.x[e] *= ring.shrink[row_of[e]];
      }
    }
    multiply_values<T, DIM>(ring, stage, sums);
  }
  __syncwarp();

  // The warps' sums take the place of their keys, and are merged.
  constexpr int STEP = DIM + 4;
  float* mine_out = reinterpret_cast<float*>(&ring.k[0][0][0]);
#pragma unroll
  for (int j = 0; j < DIM / KEYS; ++j) {
    wmma::store_matrix_sync(mine_out + KEYS * j, sums[j], STEP, wmma::mem_row_major);
  }
  mine.total += __shfl_xor_sync(ALL_LANES, mine.total, 1);
  mine.total += __shfl_xor_sync(ALL_LANES, mine.total, 2);
  if (lane % 4 == 0) {
    tiles.largest[warp][lane / 4] = mine.largest;
    tiles.total[warp][lane / 4] = mine.total;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * DIM; i += THREADS) {
    const int within = i / DIM, row = tile * ROWS + within, column = i % DIM;
    if (row >= rows || column >= shape.dim) continue;
    float largest = -INFINITY, total = 0.0f, sum = 0.0f;
    for (int w = 0; w < WARPS; ++w) largest = fmaxf(largest, tiles.largest[w][within]);
    const float subtracted = largest == -INFINITY ? 0.0f : largest;
    for (int w = 0; w < WARPS; ++w) {
      const float weight = exp2f(tiles.largest[w][within] - subtracted);
      total += weight * tiles.total[w][within];
      sum += weight * reinterpret_cast<const float*>(&tiles.rings[w].k[0][0][0])[within * STEP + column];
    }
    const int64_t place = (static_cast<int64_t>(number) * shape.q_len + row / group) * shape.q_heads + kv_head * group +
                          row % group;
    piece_out[place * shape.dim + column] = total > 0.0f ? sum / total : 0.0f;
    if (column == 0) piece_lse[place] = total > 0.0f ? largest + log2f(total) : -INFINITY;
  }
}

// A block merges the pieces of one row; its warps share the pieces, its lanes the columns.
template <typename T>
__global__ void __launch_bounds__(32 * MERGE_WARPS)
    merge(const float* piece_out, const float* piece_lse, T* out, float* lse, Shape shape) {
  __shared__ float sums[MERGE_WARPS][MOST_DIM];
  const int rows = shape.q_len * shape.q_heads, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int sequence = static_cast<int>(blockIdx.x) / rows, within = static_cast<int>(blockIdx.x) % rows;
  int before = 0;
  for (int b = lane; b < sequence; b += 32) before += shape.pieces(b);
  before = sum_of_warp(before);
  const int count = shape.pieces(sequence);
  piece_lse += static_cast<int64_t>(before) * rows + within;
  piece_out += (static_cast<int64_t>(before) * rows + within) * shape.dim;

  float largest = -INFINITY, total = 0.0f;
  for (int i = lane; i < count; i += 32) largest = fmaxf(largest, piece_lse[static_cast<int64_t>(i) * rows]);
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, step));
  const float subtracted = largest == -INFINITY ? 0.0f : largest;
  for (int i = lane; i < count; i += 32) total += exp2f(piece_lse[static_cast<int64_t>(i) * rows] - subtracted);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(ALL_LANES, total, step);

  float mine[MOST_DIM / 32] = {};
#pragma unroll 4
  for (int i = warp; i < count; i += MERGE_WARPS) {
    const float weight = exp2f(piece_lse[static_cast<int64_t>(i) * rows] - subtracted);
    const float* from = piece_out + static_cast<int64_t>(i) * rows * shape.dim;
#pragma unroll
    for (int c = 0; c < MOST_DIM / 32; ++c) {
      if (32 * c + lane < shape.dim) mine[c] += weight * from[32 * c + lane];
    }
  }
#pragma unroll
  for (int c = 0; c < MOST_DIM / 32; ++c) sums[warp][32 * c + lane] = mine[c];
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x);
  if (column < shape.dim) {
    float sum = 0.0f;
    for (int w = 0; w < MERGE_WARPS; ++w) sum += sums[w][column];
    out[static_cast<int64_t>(blockIdx.x) * shape.dim + column] = static_cast<T>(total > 0.0f ? sum / total : 0.0f);
  }
  if (column == 0) lse[blockIdx.x] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
}

// --- launching --------------------------------------------------------------------------------------------------------

// Scratch memory that is kept from call to call, because allocating takes longer than a call does; nothing in it is.
float* scratch(int64_t floats) {
  static float* kept = nullptr;
  static int64_t has = 0;
  if (floats > has) {
    cudaFree(kept);
    has = cudaMalloc(&kept, floats * sizeof(float)) == cudaSuccess ? floats : 0;
    if (has == 0) kept = nullptr;
  }
  return kept;
}

template <typename T, int DIM>
void launch(const T* q, Cache<T> cache, float* piece_out, float* piece_lse, Shape shape, int64_t pieces, int tiles,
            cudaStream_t stream) {
  constexpr int BYTES = sizeof(Tiles<T, DIM>);
  cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
  const unsigned blocks = static_cast<unsigned>(pieces * shape.kv_heads * tiles);
  attend<T, DIM><<<blocks, THREADS, BYTES, stream>>>(q, cache, piece_out, piece_lse, shape, tiles);
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t rows = q_len * (q_heads / kv_heads), tiles = (rows + ROWS - 1) / ROWS;
  // More keys than this no sequence's rows can see, all sequences together.
  int64_t most = entries * page_size;
  if (window > 0 && batch * (window + q_len - 1) < most) most = batch * (window + q_len - 1);
  constexpr int64_t STEP = WARPS * KEYS;
  int64_t piece = most * kv_heads * tiles / (multiprocessors * PIECES_PER_MULTIPROCESSOR);
  piece = (piece < 2 * STEP ? 2 * STEP : piece + STEP - 1) / STEP * STEP;
  const int64_t pieces = most / piece + batch, results = pieces * q_len * q_heads;
  float* piece_out = scratch(results * (dim + 1));
  if (piece_out == nullptr) return;
  float* piece_lse = piece_out + results * dim;
  const auto aligned = [&](const T* start) { return reinterpret_cast<uintptr_t>(start) % 16 == 0 && dim % PACK == 0; };
  const Cache<T> cache = {k_cache, v_cache, aligned(k_cache) && aligned(v_cache)};
  const Shape shape = {kv_indptr, kv_indices, last_page_len, static_cast<int>(batch), static_cast<int>(q_len),
                       static_cast<int>(q_heads), static_cast<int>(kv_heads), static_cast<int>(dim),
                       static_cast<int>(page_size), static_cast<int>(window), static_cast<int>(piece), scale * LOG2_E};
  if (dim <= 64) {
    launch<T, 64>(q, cache, piece_out, piece_lse, shape, pieces, static_cast<int>(tiles), stream);
  } else {
    launch<T, 128>(q, cache, piece_out, piece_lse, shape, pieces, static_cast<int>(tiles), stream);
  }
  merge<T><<<static_cast<unsigned>(batch * q_len * q_heads), 32 * MERGE_WARPS, 0, stream>>>(piece_out, piece_lse, out, lse,
                                                                                           shape);
}
