// Top-k and radix sort, the staff kernels: each row's first k keys, in order, and where in the row they stood.
//
// A key is mapped to a 32-bit number that is smaller for what comes first: NaN before all, -0 like +0. Few keys are
// selected: a block walks over a part of a row, and puts what comes before its limit into a list in shared memory, in the
// order of indices. When the list is full, four digits find its k-th number, the k first stay, and that number is the new
// limit: soon nearly every key is dropped as it is read. A second launch does the same with what the parts kept, and ranks
// the last k by counting. Otherwise rows are sorted by digits of eight bits, the lowest first: a kernel counts each tile's
// digits, one scans the counts, and one moves keys. There, a warp finds the lanes with the same digit by one instruction,
// and a tile is put in order in shared memory before it is written, so that neighbours write to neighbours.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int BINS = 256;  // one for each thread
constexpr uint32_t ABSENT = 0xFFFFFFFFu;

template <typename T>
__device__ uint32_t number_of(T key) {
  const float wide = static_cast<float>(key);
  if (wide != wide) return 0;
  const uint32_t bits = __float_as_uint(wide == 0.0f ? 0.0f : wide);
  return bits >> 31 ? bits : bits ^ 0x7FFFFFFFu;
}

// The sum over all threads up to this one. `of_warps` is free again after the next barrier.
__device__ int scan_block(int value, int* of_warps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, value, step);
    if (lane >= step) value += other;
  }
  if (lane == 31) of_warps[warp] = value;
  __syncthreads();
  for (int other = 0; other < warp; ++other) value += of_warps[other];
  return value;
}

// What a row has no keys for.
template <typename T>
__global__ void fill_kernel(const int32_t* lengths, T* values, int32_t* indices, int64_t k) {
  const int64_t row = blockIdx.y, place = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (place < lengths[row] || place >= k) return;
  values[row * k + place] = static_cast<T>(-INFINITY);
  indices[row * k + place] = -1;
}

// --- few keys: select -------------------------------------------------------------------------------------------------

constexpr int PER_STEP = 8;
constexpr int STEP = THREADS * PER_STEP;
constexpr int LIST = 2 * STEP;
constexpr int SELECTED = 1024;  // the largest k for which keys are selected; behind k there is room for a step

struct List {
  uint32_t numbers[LIST];
  int32_t indices[LIST];
  int bins[BINS];
  int of_warps[2][WARPS];
  int chosen, below;
};

// Leaves the k first of `held` entries, more than k, in their order. Returns the k-th number.
__device__ uint32_t select_first(List& list, int held, int k) {
  uint32_t kth = 0;
  int left = k;  // how many are wanted among those that begin like kth
  for (int shift = 24; shift >= 0; shift -= 8) {
    list.bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < held; i += THREADS) {
      const uint32_t number = list.numbers[i];
      if (shift == 24 || number >> (shift + 8) == kth >> (shift + 8)) atomicAdd(&list.bins[number >> shift & 255], 1);
    }
    __syncthreads();
    const int own = list.bins[threadIdx.x], upto = scan_block(own, list.of_warps[0]);
    if (upto - own < left && left <= upto) {
      list.chosen = threadIdx.x;
      list.below = upto - own;
    }
    __syncthreads();
    kth |= static_cast<uint32_t>(list.chosen) << shift;
    left -= list.below;
    __syncthreads();
  }
  // Of the k-th number's equals the first `left` stay.
  int less = 0, equals = 0;
  for (int start = 0; start < held; start += THREADS) {
    const int i = start + threadIdx.x;
    const uint32_t number = i < held ? list.numbers[i] : ABSENT;
    const int32_t index = i < held ? list.indices[i] : -1;
    const int is_less = i < held && number < kth, is_equal = i < held && number == kth;
    const int packed = scan_block(is_less | is_equal << 16, list.of_warps[start / THREADS % 2]);
    const int less_upto = less + (packed & 0xFFFF), equals_upto = equals + (packed >> 16);
    // All of this round have been read: places are not behind where their entries were.
    if (is_less || (is_equal && equals_upto <= left)) {
      const int place = less_upto + min(equals_upto, left) - 1;
      list.numbers[place] = number;
      list.indices[place] = index;
    }
    if (threadIdx.x == THREADS - 1) {
      list.bins[0] = less_upto;
      list.bins[1] = equals_upto;
    }
    __syncthreads();
    less = list.bins[0];
    equals = list.bins[1];
    __syncthreads();
  }
  return kth;
}

// Where keys come from: a row of the input, or what its parts kept.
template <typename T>
struct Row {
  const T* keys;
  int length;
  bool aligned;

  __device__ void read(int first, uint32_t (&numbers)[PER_STEP], int32_t (&indices)[PER_STEP]) const {
    T own[PER_STEP];
    if (aligned && first + PER_STEP <= length) {
      constexpr int PACKS = PER_STEP * sizeof(T) / 16;
      uint4 packs[PACKS];
      for (int i = 0; i < PACKS; ++i) packs[i] = reinterpret_cast<const uint4*>(keys + first)[i];
      memcpy(own, packs, sizeof(own));
    } else {
      for (int i = 0; i < PER_STEP; ++i) own[i] = first + i < length ? keys[first + i] : static_cast<T>(0.0f);
    }
    for (int i = 0; i < PER_STEP; ++i) {
      numbers[i] = first + i < length ? number_of(own[i]) : ABSENT;
      indices[i] = first + i;
    }
  }
};

struct Kept {
  const uint32_t* all_numbers;
  const int32_t* all_indices;
  int length;

  __device__ void read(int first, uint32_t (&numbers)[PER_STEP], int32_t (&indices)[PER_STEP]) const {
    for (int i = 0; i < PER_STEP; ++i) {
      numbers[i] = first + i < length ? all_numbers[first + i] : ABSENT;
      indices[i] = first + i < length ? all_indices[first + i] : -1;
    }
  }
};

// Fills the list with the k first of the entries from `begin` to `end`, fewer if there are fewer; returns how many.
template <typename Source>
__device__ int walk(List& list, const Source& source, int begin, int end, int k) {
  int held = 0;
  uint32_t limit = ABSENT;  // what does not come before it is dropped
  for (int start = begin; start < end; start += STEP) {
    uint32_t numbers[PER_STEP];
    int32_t indices[PER_STEP];
    const int first = start + threadIdx.x * PER_STEP;
    source.read(first, numbers, indices);
    int mine = 0;
    for (int i = 0; i < PER_STEP; ++i) {
      if (first + i >= end) numbers[i] = ABSENT;
      mine += numbers[i] < limit;
    }
    if (!__syncthreads_or(mine)) continue;
    const int upto = scan_block(mine, list.of_warps[0]);
    int place = held + upto - mine;
    for (int i = 0; i < PER_STEP; ++i) {
      if (numbers[i] < limit) {
        list.numbers[place] = numbers[i];
        list.indices[place++] = indices[i];
      }
    }
    for (int warp = 0; warp < WARPS; ++warp) mine = warp == 0 ? list.of_warps[0][0] : mine + list.of_warps[0][warp];
    held += mine;
    __syncthreads();
    if (held > LIST - STEP) {
      limit = select_first(list, held, k);
      held = k;
    }
  }
  if (held > k) {
    select_first(list, held, k);
    held = k;
  }
  __syncthreads();
  return held;
}

template <typename T>
__global__ void keep_kernel(const T* keys, const int32_t* lengths, uint32_t* numbers, int32_t* indices, int n, int k, int part) {
  __shared__ List list;
  const int64_t row = blockIdx.y;
  const T* own = keys + row * n;
  const Row<T> source = {own, lengths[row], reinterpret_cast<uintptr_t>(own) % 16 == 0};
  const int begin = blockIdx.x * part;
  const int held = walk(list, source, begin, min(begin + part, source.length), k);
  const int64_t to = (row * gridDim.x + blockIdx.x) * k;
  for (int i = threadIdx.x; i < k; i += THREADS) {
    numbers[to + i] = i < held ? list.numbers[i] : ABSENT;
    indices[to + i] = i < held ? list.indices[i] : -1;
  }
}

template <typename T>
__global__ void rank_kernel(const T* keys, const uint32_t* numbers, const int32_t* indices, T* values, int32_t* places, int n,
                            int k, int parts) {
  __shared__ List list;
  const int64_t row = blockIdx.x;
  const Kept source = {numbers + row * parts * k, indices + row * parts * k, parts * k};
  const int held = walk(list, source, 0, source.length, k);
  for (int i = threadIdx.x; i < held; i += THREADS) {
    const uint32_t number = list.numbers[i];
    int place = 0;
    for (int j = 0; j < held; ++j) place += list.numbers[j] < number || (list.numbers[j] == number && j < i);
    values[row * k + place] = keys[row * n + list.indices[i]];
    places[row * k + place] = list.indices[i];
  }
}

// --- whole rows: sort ---------------------------------------------------------------------------------------------------

constexpr int PER_THREAD = 16;
constexpr int TILE = THREADS * PER_THREAD;

// counts[row][digit][tile]: how many keys of the tile have the digit.
template <typename T>
__global__ void count_kernel(const T* keys, const int32_t* lengths, int32_t* counts, int n, int shift) {
  __shared__ int of_warps[WARPS][BINS];
  const int64_t row = blockIdx.y;
  const int tile = blockIdx.x, warp = threadIdx.x / 32, length = lengths[row];
  for (int i = 0; i < WARPS; ++i) of_warps[i][threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < PER_THREAD; ++i) {
    const int at = tile * TILE + i * THREADS + threadIdx.x;
    if (at < length) atomicAdd(&of_warps[warp][number_of(keys[row * n + at]) >> shift & 255], 1);
  }
  __syncthreads();
  int count = 0;
  for (int i = 0; i < WARPS; ++i) count += of_warps[i][threadIdx.x];
  counts[(row * BINS + threadIdx.x) * gridDim.x + tile] = count;
}

// A warp for each digit of a row: what is before each tile in the place of its count, and the sum of all.
__global__ void scan_kernel(int32_t* counts, int32_t* totals, int tiles) {
  const int lane = threadIdx.x % 32;
  const int64_t digit = (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * WARPS + threadIdx.x / 32;
  int before = 0;
  for (int start = 0; start < tiles; start += 32) {
    int32_t* place = counts + digit * tiles + start + lane;
    const int count = start + lane < tiles ? *place : 0;
    int upto = count;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, upto, step);
      if (lane >= step) upto += other;
    }
    if (start + lane < tiles) *place = before + upto - count;
    before += __shfl_sync(~0u, upto, 31);
  }
  if (lane == 0) totals[digit] = before;
}

template <typename T>
__global__ void move_kernel(const T* keys, const int32_t* indices, const int32_t* lengths, const int32_t* counts,
                            const int32_t* totals, T* to_keys, int32_t* to_indices, int n, int64_t to_n, int shift) {
  __shared__ T tile_keys[TILE];
  __shared__ int32_t tile_indices[TILE];
  __shared__ int of_warps[WARPS][BINS];
  __shared__ int starts[BINS];
  __shared__ int sums[2][WARPS];
  const int64_t row = blockIdx.y;
  const int tile = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int held = min(lengths[row] - tile * TILE, TILE);
  if (held <= 0) return;
  for (int i = 0; i < WARPS; ++i) of_warps[i][threadIdx.x] = 0;
  __syncthreads();
  // A warp has neighbouring keys, and takes 32 at a time: so ranks follow the order of the row.
  T own[PER_THREAD];
  int32_t index[PER_THREAD];
  int rank[PER_THREAD];
  for (int i = 0; i < PER_THREAD; ++i) {
    const int at = (warp * PER_THREAD + i) * 32 + lane;
    const bool here = at < held;
    if (here) {
      own[i] = keys[row * n + tile * TILE + at];
      index[i] = indices == nullptr ? tile * TILE + at : indices[row * n + tile * TILE + at];
    }
    const int digit = here ? number_of(own[i]) >> shift & 255 : BINS;
    const unsigned same = __match_any_sync(~0u, digit);
    const int earlier = __popc(same & ((1u << lane) - 1));
    rank[i] = here ? of_warps[warp][digit] + earlier : 0;
    __syncwarp();
    if (here && earlier == 0) of_warps[warp][digit] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  // Thread d has digit d: where each warp's keys of it begin in the tile, and the tile's in the row.
  int count = 0;
  for (int i = 0; i < WARPS; ++i) {
    const int of_warp = of_warps[i][threadIdx.x];
    of_warps[i][threadIdx.x] = count;
    count += of_warp;
  }
  const int total = totals[row * BINS + threadIdx.x];
  const int in_tile = scan_block(count, sums[0]) - count;
  const int in_row = scan_block(total, sums[1]) - total + counts[(row * BINS + threadIdx.x) * gridDim.x + tile];
  for (int i = 0; i < WARPS; ++i) of_warps[i][threadIdx.x] += in_tile;
  starts[threadIdx.x] = in_row - in_tile;
  __syncthreads();
  for (int i = 0; i < PER_THREAD; ++i) {
    if ((warp * PER_THREAD + i) * 32 + lane < held) {
      const int place = rank[i] + of_warps[warp][number_of(own[i]) >> shift & 255];
      tile_keys[place] = own[i];
      tile_indices[place] = index[i];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < held; i += THREADS) {
    const T key = tile_keys[i];
    const int64_t place = starts[number_of(key) >> shift & 255] + i;
    if (place < to_n) {
      to_keys[row * to_n + place] = key;
      to_indices[row * to_n + place] = tile_indices[i];
    }
  }
}

// Memory of the device that stays from call to call: cudaMallocAsync gives it back when the device is idle.
static void* scratch(size_t bytes) {
  static void* memory = nullptr;
  static size_t size = 0;
  if (bytes > size) {
    cudaFree(memory);
    memory = nullptr;
    size = cudaMalloc(&memory, bytes) == cudaSuccess ? bytes : 0;
  }
  return size >= bytes ? memory : nullptr;
}

// --- the launcher -------------------------------------------------------------------------------------------------------

template <typename T>
static void few(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
                cudaStream_t stream) {
  // Enough parts to fill a GPU, of eight lists at least.
  int64_t parts = std::min<int64_t>((2048 + rows - 1) / rows, n / (8 * LIST));
  parts = std::max<int64_t>(parts, 1);
  const int64_t part = ((n + parts - 1) / parts + STEP - 1) / STEP * STEP;
  parts = (n + part - 1) / part;
  uint32_t* numbers = static_cast<uint32_t*>(scratch(rows * parts * k * 8));
  if (numbers == nullptr) return;
  int32_t* kept = reinterpret_cast<int32_t*>(numbers + rows * parts * k);
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(rows));
  keep_kernel<<<grid, THREADS, 0, stream>>>(keys, lengths, numbers, kept, static_cast<int>(n), static_cast<int>(k),
                                            static_cast<int>(part));
  rank_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(keys, numbers, kept, values, indices, static_cast<int>(n),
                                                                  static_cast<int>(k), static_cast<int>(parts));
}

template <typename T>
static void whole(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
                  int lowest, cudaStream_t stream) {
  const int64_t tiles = (n + TILE - 1) / TILE;
  const int64_t words = rows * BINS * (tiles + 1);
  int32_t* counts = static_cast<int32_t*>(scratch(words * 4 + rows * n * 2 * (4 + sizeof(T))));
  if (counts == nullptr) return;
  int32_t* totals = counts + rows * BINS * tiles;
  int32_t* of_indices[2] = {counts + words, counts + words + rows * n};
  T* of_keys[2] = {reinterpret_cast<T*>(of_indices[1] + rows * n), reinterpret_cast<T*>(of_indices[1] + rows * n) + rows * n};
  const T* from = keys;
  const int32_t* from_indices = nullptr;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(rows));
  for (int shift = lowest, pass = 0; shift < 32; shift += 8, ++pass) {
    const bool last = shift == 24;
    T* to = last ? values : of_keys[pass % 2];
    int32_t* to_indices = last ? indices : of_indices[pass % 2];
    count_kernel<<<grid, THREADS, 0, stream>>>(from, lengths, counts, static_cast<int>(n), shift);
    scan_kernel<<<dim3(BINS / WARPS, static_cast<unsigned>(rows)), THREADS, 0, stream>>>(counts, totals, static_cast<int>(tiles));
    move_kernel<<<grid, THREADS, 0, stream>>>(from, from_indices, lengths, counts, totals, to, to_indices, static_cast<int>(n),
                                              last ? k : n, shift);
    from = to;
    from_indices = to_indices;
  }
}

// A 16-bit key that was widened has nothing in its lowest bits.
static int lowest_bits(float) { return 0; }
static int lowest_bits(half) { return 8; }
static int lowest_bits(__nv_bfloat16) { return 16; }

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((k + THREADS - 1) / THREADS), static_cast<unsigned>(rows));
  fill_kernel<<<grid, THREADS, 0, stream>>>(lengths, values, indices, k);
  if (k <= SELECTED) {
    few(keys, lengths, values, indices, rows, n, k, stream);
  } else {
    whole(keys, lengths, values, indices, rows, n, k, lowest_bits(T{}), stream);
  }
}
