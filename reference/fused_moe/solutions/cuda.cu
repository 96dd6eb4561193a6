// Fused mixture of experts, the staff kernel in CUDA C++: five launches, whatever the number of experts, and no word to the host.
//
// 1. Route: a warp for a token. Each lane holds the logits of every 32nd expert; the largest of all is found by shuffles, the lowest
//    number among equals, and struck out, `top` times.
// 2. Place: pair t * top + j is choice j of token t. The block of an expert counts the pairs of lower experts, and writes the numbers
//    of its own behind them, in their order.
// 3. Gate and up, 4. down: a grid as large as rows may need at worst. A warp scans the counts of tiles of 32 experts at a time until it
//    has found the block's own tile, or none. Rows of x are fetched by the numbers of their pairs. Slices of 32 come by cp.async into a
//    ring of four stages, and are multiplied by nvcuda::wmma; with a gate half of a warp's sums are values, for the same columns.
//    What leaves are rows of silu(gate) * value, in the order of experts; or of r * p, at the place of their pair.
// 5. Combine: the `top` rows of a token, which are neighbours now, are added in float32, in order.
//
// Tiles are 128 rows high, or 16 where experts have few tokens: then an expert's weights are read once, and nothing is multiplied for
// nobody. Not done: wgmma and TMA, as rung 21's staff kernel has them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <algorithm>
#include <cstdint>

using namespace nvcuda;

constexpr unsigned ALL_LANES = ~0u;
constexpr int MOST_EXPERTS = 256;
constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int SLICE = 32, STAGES = 4;
constexpr int PACK = 8;              // 16-bit numbers in 16 bytes.
constexpr int STEP = SLICE + PACK;   // Padded, so that the rows of a fragment lie in different banks.
constexpr int GROUP = 8;             // Tiles of rows that walk through the columns together.

__host__ __device__ int64_t ceil_div(int64_t size, int64_t part) { return (size + part - 1) / part; }

// Which is first of two logits and their experts.
__device__ bool is_before(float a, int i, float b, int j) { return a > b || (a == b && i < j); }

__global__ void __launch_bounds__(THREADS)
    route_kernel(const float* logits, int32_t* chosen, float* weights, int64_t tokens, int experts, int top) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (token >= tokens) return;
  float own[MOST_EXPERTS / 32];
#pragma unroll
  for (int i = 0; i < MOST_EXPERTS / 32; ++i) {
    const int expert = 32 * i + lane;
    own[i] = expert < experts ? logits[token * experts + expert] : -INFINITY;
  }
  float largest = 0.0f, total = 0.0f, mine = 0.0f;
  for (int j = 0; j < top; ++j) {
    float best = -INFINITY;
    int found = MOST_EXPERTS;
#pragma unroll
    for (int i = 0; i < MOST_EXPERTS / 32; ++i) {
      if (is_before(own[i], 32 * i + lane, best, found)) best = own[i], found = 32 * i + lane;
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(ALL_LANES, best, step);
      const int expert = __shfl_xor_sync(ALL_LANES, found, step);
      if (is_before(other, expert, best, found)) best = other, found = expert;
    }
#pragma unroll
    for (int i = 0; i < MOST_EXPERTS / 32; ++i) {
      if (32 * i + lane == found) own[i] = -INFINITY;
    }
    if (j == 0) largest = best;
    const float power = expf(best - largest);
    total += power;
    if (lane == j) {
      mine = power;
      chosen[token * top + j] = found;
    }
  }
  if (lane < top) weights[token * top + lane] = mine / total;
}

constexpr int PLACE_THREADS = 512, PLACE_WARPS = PLACE_THREADS / 32, ITEMS = 4;

// The numbers of one expert's pairs, in their order, behind those of all lower experts; and how many they are.
__global__ void __launch_bounds__(PLACE_THREADS)
    place_kernel(const int32_t* chosen, int32_t* order, int32_t* counts, int32_t pairs) {
  __shared__ int lower, equal, of_warps[PLACE_WARPS];
  const int expert = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) lower = equal = 0;
  __syncthreads();
  int less = 0, same = 0;
  for (int i = threadIdx.x; i < pairs; i += PLACE_THREADS) {
    less += chosen[i] < expert;
    same += chosen[i] == expert;
  }
  less = __reduce_add_sync(ALL_LANES, less);
  same = __reduce_add_sync(ALL_LANES, same);
  if (lane == 0) {
    atomicAdd(&lower, less);
    atomicAdd(&equal, same);
  }
  __syncthreads();
  if (threadIdx.x == 0) counts[expert] = equal;
  int next = lower;
  for (int start = 0; start < pairs; start += PLACE_THREADS * ITEMS) {
    const int first = start + static_cast<int>(threadIdx.x) * ITEMS;
    bool is_mine[ITEMS];
    int count = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      is_mine[i] = first + i < pairs && chosen[first + i] == expert;
      count += is_mine[i];
    }
    int upto = count;
    for (int step = 1; step < 32; step *= 2) {
      const int left = __shfl_up_sync(ALL_LANES, upto, step);
      if (lane >= step) upto += left;
    }
    if (lane == 31) of_warps[warp] = upto;
    __syncthreads();
    int place = next + upto - count;
    for (int other = 0; other < PLACE_WARPS; ++other) {
      if (other < warp) place += of_warps[other];
      next += of_warps[other];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      if (is_mine[i]) order[place++] = first + i;
    }
  }
}

template <int WARPS_DOWN, int DOWN, int ACROSS>
struct Tile {
  static constexpr int FRAGMENTS_DOWN = DOWN, FRAGMENTS_ACROSS = ACROSS;  // Of a warp.
  static constexpr int WARPS_ACROSS = WARPS / WARPS_DOWN;
  static constexpr int ROWS = 16 * DOWN * WARPS_DOWN, COLUMNS = 16 * ACROSS * WARPS_ACROSS;
  static constexpr int STAGE = (ROWS + COLUMNS) * STEP;  // Numbers of one slice of both factors.
  static constexpr int BYTES = STAGES * STAGE * 2;
  static constexpr int OUT_STEP = 16 * ACROSS + 4;       // Padded, of a warp's floats on their way out.
};
using Large = Tile<2, 4, 4>;
using Small = Tile<1, 1, 2>;

struct Work {
  int expert;  // -1: nothing to do.
  int64_t row, end;
};

// Every expert has as many tiles as its rows fill, none where it has no rows. All lanes of a warp ask.
__device__ Work find(const int32_t* counts, int experts, int height, int tile) {
  const int lane = threadIdx.x % 32;
  int tiles_passed = 0, rows_passed = 0;
  for (int first = 0; first < experts; first += 32) {
    const int rows = first + lane < experts ? counts[first + lane] : 0;
    const int tiles = (rows + height - 1) / height;
    int tiles_upto = tiles, rows_upto = rows;
    for (int step = 1; step < 32; step *= 2) {
      const int more_tiles = __shfl_up_sync(ALL_LANES, tiles_upto, step), more_rows = __shfl_up_sync(ALL_LANES, rows_upto, step);
      if (lane >= step) tiles_upto += more_tiles, rows_upto += more_rows;
    }
    const unsigned behind = __ballot_sync(ALL_LANES, tiles_passed + tiles_upto > tile);
    if (behind) {
      const int mine = __ffs(behind) - 1;
      const int tiles_before = tiles_passed + __shfl_sync(ALL_LANES, tiles_upto - tiles, mine);
      const int rows_before = rows_passed + __shfl_sync(ALL_LANES, rows_upto - rows, mine);
      const int own = __shfl_sync(ALL_LANES, rows, mine);
      return {first + mine, rows_before + static_cast<int64_t>(tile - tiles_before) * height, static_cast<int64_t>(rows_before) + own};
    }
    tiles_passed += __shfl_sync(ALL_LANES, tiles_upto, 31);
    rows_passed += __shfl_sync(ALL_LANES, rows_upto, 31);
  }
  return {-1, 0, 0};
}

// The rows of all experts, as they are multiplied. With GATED, the rows of `from` are tokens, and those of `to` are in the order of
// experts; else the other way round, and a row's weight is multiplied.
template <typename T>
struct Product {
  const T *from, *weights;
  T* to;
  const int32_t *order, *counts;
  const float* of_pairs;
  int experts, top, most, columns, k;
  bool loads_packs, stores_packs;
};

template <typename T>
__device__ void copy_pack(T* to, const T* from, int left, bool whole) {
  if (whole && from && left > 0) {
    __pipeline_memcpy_async(to, from, 16);
    return;
  }
  for (int i = 0; i < PACK; ++i) to[i] = from && i < left ? from[i] : static_cast<T>(0.0f);
}

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

template <bool GATED, typename TILE, typename T>
__device__ void multiply(Sums (&sums)[TILE::FRAGMENTS_DOWN][TILE::FRAGMENTS_ACROSS], const T* a_rows, const T* b_rows) {
  constexpr int DOWN = TILE::FRAGMENTS_DOWN, ACROSS = TILE::FRAGMENTS_ACROSS;
#pragma unroll
  for (int l = 0; l < SLICE; l += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[DOWN];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right[ACROSS];
#pragma unroll
    for (int i = 0; i < DOWN; ++i) wmma::load_matrix_sync(left[i], a_rows + 16 * i * STEP + l, STEP);
#pragma unroll
    for (int j = 0; j < ACROSS; ++j) {
      const int row = GATED ? j / (ACROSS / 2) * (TILE::COLUMNS / 2) + j % (ACROSS / 2) * 16 : 16 * j;
      wmma::load_matrix_sync(right[j], b_rows + row * STEP + l, STEP);
    }
#pragma unroll
    for (int i = 0; i < DOWN; ++i) {
#pragma unroll
      for (int j = 0; j < ACROSS; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
  }
}

// Eight neighbours of a row: activated or weighed, rounded, and stored at once where they may be.
template <bool GATED, typename TILE, typename T>
__device__ void finish(const Product<T>& product, int64_t row, int column, const float* sums) {
  uint4 pack;
  T* const numbers = reinterpret_cast<T*>(&pack);
  const int64_t to_row = GATED ? row : product.order[row];
  const float weight = GATED ? 1.0f : product.of_pairs[to_row];
#pragma unroll
  for (int i = 0; i < PACK; ++i) {
    const float active = GATED ? sums[i] / (1.0f + __expf(-sums[i])) * sums[8 * TILE::FRAGMENTS_ACROSS + i] : sums[i] * weight;
    numbers[i] = static_cast<T>(active);
  }
  T* const to = product.to + to_row * product.columns + column;
  if (product.stores_packs) {
    *reinterpret_cast<uint4*>(to) = pack;
    return;
  }
  for (int i = 0; i < PACK && column + i < product.columns; ++i) to[i] = numbers[i];
}

template <bool GATED, typename TILE, typename T>
__global__ void __launch_bounds__(THREADS) product_kernel(Product<T> product) {
  constexpr int ACROSS = TILE::FRAGMENTS_ACROSS, COLUMNS = GATED ? TILE::COLUMNS / 2 : TILE::COLUMNS;  // Of `to`.
  constexpr int IN_ROW = SLICE / PACK, AT_ONCE = THREADS / IN_ROW;  // Packs of a row, and rows that all threads copy at once.
  constexpr int A_PACKS = static_cast<int>((TILE::ROWS + AT_ONCE - 1) / AT_ONCE), B_PACKS = TILE::COLUMNS / AT_ONCE;
  extern __shared__ uint4 shared[];
  T* const ring = reinterpret_cast<T*>(shared);
  const int tiles_n = static_cast<int>(ceil_div(product.columns, COLUMNS));
  const int first_tile = blockIdx.x / (GROUP * tiles_n) * GROUP, height = min(product.most - first_tile, GROUP);
  const int within = blockIdx.x % (GROUP * tiles_n);
  const Work work = find(product.counts, product.experts, TILE::ROWS, first_tile + within % height);
  if (work.expert < 0) return;
  const int first_column = within / height * COLUMNS, k = product.k;

  const int r = threadIdx.x / IN_ROW, l = threadIdx.x % IN_ROW * PACK;
  const T *a_rows[A_PACKS], *b_rows[B_PACKS];
#pragma unroll
  for (int i = 0; i < A_PACKS; ++i) {
    const int64_t row = work.row + r + i * AT_ONCE;
    const bool there = row < work.end && r + i * AT_ONCE < TILE::ROWS;
    a_rows[i] = there ? product.from + (GATED ? product.order[row] / product.top : row) * static_cast<int64_t>(k) : nullptr;
  }
#pragma unroll
  for (int i = 0; i < B_PACKS; ++i) {
    const int part = (r + i * AT_ONCE) / COLUMNS, column = first_column + (r + i * AT_ONCE) % COLUMNS;
    const int64_t row = (static_cast<int64_t>(work.expert) * (GATED ? 2 : 1) + part) * product.columns + column;
    b_rows[i] = column < product.columns ? product.weights + row * k : nullptr;
  }
  const auto copy = [&](int slice) {
    const int start = slice * SLICE + l;
    T* const stage = ring + slice % STAGES * TILE::STAGE;
#pragma unroll
    for (int i = 0; i < A_PACKS; ++i) {
      if (r + i * AT_ONCE >= TILE::ROWS) continue;
      copy_pack(stage + (r + i * AT_ONCE) * STEP + l, a_rows[i] ? a_rows[i] + start : nullptr, k - start, product.loads_packs);
    }
#pragma unroll
    for (int i = 0; i < B_PACKS; ++i) {
      T* const to = stage + (TILE::ROWS + r + i * AT_ONCE) * STEP + l;
      copy_pack(to, b_rows[i] ? b_rows[i] + start : nullptr, k - start, product.loads_packs);
    }
  };

  const int warp = threadIdx.x / 32;
  const int warp_row = warp / TILE::WARPS_ACROSS * 16 * TILE::FRAGMENTS_DOWN;
  const int warp_column = warp % TILE::WARPS_ACROSS * (COLUMNS / TILE::WARPS_ACROSS);
  const bool works = work.row + warp_row < work.end && first_column + warp_column < product.columns;
  Sums sums[TILE::FRAGMENTS_DOWN][ACROSS];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }
  const int slices = static_cast<int>(ceil_div(k, SLICE));
  for (int slice = 0; slice < STAGES - 1; ++slice) {
    if (slice < slices) copy(slice);
    __pipeline_commit();
  }
  for (int slice = 0; slice < slices; ++slice) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();  // This slice is there for all, and all are done with the one before.
    if (slice + STAGES - 1 < slices) copy(slice + STAGES - 1);
    __pipeline_commit();
    const T* const stage = ring + slice % STAGES * TILE::STAGE;
    if (works) multiply<GATED, TILE>(sums, stage + warp_row * STEP, stage + (TILE::ROWS + warp_column) * STEP);
  }
  __syncthreads();  // The ring is free for floats.

  // Which lane holds which sum of a fragment is not said anywhere: sixteen rows at a time go out through the warp's own floats.
  if (!works) return;
  constexpr int PACKS = COLUMNS / TILE::WARPS_ACROSS / PACK;  // Of a warp's row.
  float* const floats = reinterpret_cast<float*>(shared) + warp * 16 * TILE::OUT_STEP;
#pragma unroll
  for (int i = 0; i < TILE::FRAGMENTS_DOWN; ++i) {
#pragma unroll
    for (int j = 0; j < ACROSS; ++j) wmma::store_matrix_sync(floats + 16 * j, sums[i][j], TILE::OUT_STEP, wmma::mem_row_major);
    __syncwarp();
    for (int pack = threadIdx.x % 32; pack < 16 * PACKS; pack += 32) {
      const int64_t row = work.row + warp_row + 16 * i + pack / PACKS;
      const int column = first_column + warp_column + pack % PACKS * PACK;
      const float* const own = floats + pack / PACKS * TILE::OUT_STEP + pack % PACKS * PACK;
      if (row < work.end && column < product.columns) finish<GATED, TILE>(product, row, column, own);
    }
    __syncwarp();
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS) combine_kernel(const T* parts, T* out, int top, int hidden, bool whole) {
  const int64_t token = blockIdx.x;
  const int width = whole ? PACK : 1;
  for (int column = threadIdx.x * width; column < hidden; column += THREADS * width) {
    float total[PACK] = {};
    for (int j = 0; j < top; ++j) {
      const T* const part = parts + (token * top + j) * hidden + column;
      uint4 pack = {0, 0, 0, 0};
      if (whole) pack = *reinterpret_cast<const uint4*>(part);
      if (!whole) *reinterpret_cast<T*>(&pack) = *part;
#pragma unroll
      for (int i = 0; i < PACK; ++i) total[i] += static_cast<float>(reinterpret_cast<const T*>(&pack)[i]);
    }
    T* const to = out + token * hidden + column;
    uint4 pack;
#pragma unroll
    for (int i = 0; i < PACK; ++i) reinterpret_cast<T*>(&pack)[i] = static_cast<T>(total[i]);
    if (whole) *reinterpret_cast<uint4*>(to) = pack;
    if (!whole) *to = *reinterpret_cast<const T*>(&pack);
  }
}

template <bool GATED, typename TILE, typename T>
void launch(Product<T> product, int64_t pairs, cudaStream_t stream) {
  // Every expert that has a pair may have one tile that is not full.
  const int64_t filled = std::min<int64_t>(pairs, product.experts);
  product.most = static_cast<int>(filled + (pairs - filled) / TILE::ROWS);
  const int64_t blocks = product.most * ceil_div(product.columns, GATED ? TILE::COLUMNS / 2 : TILE::COLUMNS);
  cudaFuncSetAttribute(product_kernel<GATED, TILE, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::BYTES);
  product_kernel<GATED, TILE, T><<<static_cast<unsigned>(blocks), THREADS, TILE::BYTES, stream>>>(product);
}

bool is_aligned(const void* pointer, int64_t columns) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0 && columns % PACK == 0; }

// Memory of the device that stays from call to call.
void* scratch(size_t bytes) {
  static void* memory = nullptr;
  static size_t size = 0;
  if (bytes > size) {
    cudaFree(memory);
    memory = nullptr;
    size = cudaMalloc(&memory, bytes) == cudaSuccess ? bytes : 0;
  }
  return memory;
}

constexpr int PIECE = 64;  // What memory is cut into pieces of, in numbers: all begin at multiples of 128 bytes.

template <typename T>
void fused_moe(const T* x, const float* logits, const T* gate_up, const T* down, int32_t* chosen, T* out, int64_t tokens,
               int64_t experts, int64_t top, int64_t hidden, int64_t inner, cudaStream_t stream) {
  const int64_t pairs = tokens * top;
  const int64_t of_pairs = ceil_div(pairs, PIECE) * PIECE, for_counts = ceil_div(experts, PIECE) * PIECE;
  const int64_t for_y = ceil_div(pairs * inner, PIECE) * PIECE, for_parts = ceil_div(pairs * hidden, PIECE) * PIECE;
  float* const weights = static_cast<float*>(scratch((2 * of_pairs + for_counts) * 4 + (for_y + for_parts) * sizeof(T)));
  if (weights == nullptr) return;
  int32_t* const order = reinterpret_cast<int32_t*>(weights + of_pairs);
  int32_t* const counts = order + of_pairs;
  T* const y = reinterpret_cast<T*>(counts + for_counts);
  T* const parts = y + for_y;
  const int of_experts = static_cast<int>(experts), of_top = static_cast<int>(top);
  const int of_hidden = static_cast<int>(hidden), of_inner = static_cast<int>(inner);

  route_kernel<<<static_cast<unsigned>(ceil_div(tokens, WARPS)), THREADS, 0, stream>>>(logits, chosen, weights, tokens, of_experts,
                                                                                      of_top);
  place_kernel<<<static_cast<unsigned>(experts), PLACE_THREADS, 0, stream>>>(chosen, order, counts, static_cast<int32_t>(pairs));
  const Product<T> up = {x, gate_up, y, order, counts, weights, of_experts, of_top, 0, of_inner, of_hidden,
                         is_aligned(x, hidden) && is_aligned(gate_up, hidden), is_aligned(y, inner)};
  const Product<T> back = {y, down, parts, order, counts, weights, of_experts, of_top, 0, of_hidden, of_inner,
                           is_aligned(y, inner) && is_aligned(down, inner), is_aligned(parts, hidden)};
  if (pairs <= 32 * experts) {
    launch<true, Small>(up, pairs, stream);
    launch<false, Small>(back, pairs, stream);
  } else {
    launch<true, Large>(up, pairs, stream);
    launch<false, Large>(back, pairs, stream);
  }
  const bool whole = is_aligned(parts, hidden) && is_aligned(out, hidden);
  combine_kernel<<<static_cast<unsigned>(tokens), THREADS, 0, stream>>>(parts, out, of_top, of_hidden, whole);
}
