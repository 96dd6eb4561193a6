// Scan and histogram, the staff kernels: prefix[i] = x[0] + ... + x[i], and counts[v] = how many keys are v.
//
// The scan reads and writes every element once. A block scans a tile of 16384 elements in registers and shuffles, and publishes the
// tile's sum. What stands before the tile it learns by looking back: a warp reads the states of the 32 tiles before, adds their
// sums up to the nearest one that knows all that is before it, and publishes that in turn. Tiles are numbered by a ticket, in the
// order in which blocks begin to run, so that a block waits only for blocks that run already. A state is one word of 64 bits, flag and
// value, so that both come together.
//
// The histogram has one counter for every bin and lane in shared memory: lanes of a warp never meet at an address nor in a bank,
// whatever the keys are. 32 lanes are folded when the block is done, and blocks meet in memory.
//
// Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int BINS = 256;
constexpr int LANES = 32;
constexpr unsigned ALL = 0xffffffffu;

// --- scan ---------------------------------------------------------------------------------------------------------------

constexpr int SCAN_THREADS = 512;
constexpr int SCAN_WARPS = SCAN_THREADS / LANES;
constexpr int PER_THREAD = 32;
constexpr int TILE = SCAN_THREADS * PER_THREAD;

constexpr unsigned SUM_KNOWN = 1;     // The value is the sum of the tile.
constexpr unsigned PREFIX_KNOWN = 2;  // The value is the sum of the tile and of all before it.

using State = unsigned long long;

constexpr int64_t MOST_TILES = 1 << 20;  // 2^34 elements.
__device__ State states[MOST_TILES];
__device__ int ticket;

__device__ State pack(unsigned flag, float value) { return static_cast<State>(flag) << 32 | __float_as_uint(value); }
__device__ unsigned flag_of(State state) { return static_cast<unsigned>(state >> 32); }
__device__ float value_of(State state) { return __uint_as_float(static_cast<unsigned>(state)); }

// The sum over all lanes up to this one.
__device__ float scan_warp(float value) {
  const int lane = threadIdx.x % LANES;
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    const float other = __shfl_up_sync(ALL, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

__device__ float sum_warp(float value) {
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// The sum of everything before `tile`; called by one warp.
__device__ float look_back(int tile) {
  const volatile State* published = states;
  const int lane = threadIdx.x % LANES;
  float before = 0.0f;
  for (int nearest = tile - 1; nearest >= 0; nearest -= LANES) {
    State state = pack(PREFIX_KNOWN, 0.0f);  // Before the first tile there is nothing.
    if (nearest - lane >= 0) {
      do state = published[nearest - lane];
      while (flag_of(state) == 0);
    }
    __syncwarp();
    const unsigned known = __ballot_sync(ALL, flag_of(state) == PREFIX_KNOWN);
    const int last = known ? __ffs(known) - 1 : LANES;
    before += sum_warp(lane <= last ? value_of(state) : 0.0f);
    if (known) break;
  }
  return before;
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(SCAN_THREADS)
    scan_kernel(const T* x, T* prefix, int64_t n) {
  constexpr int ROUNDS = PER_THREAD / WIDTH;
  __shared__ int tile_of_block;
  __shared__ float of_warps[SCAN_WARPS];
  __shared__ float before_tile;
  if (threadIdx.x == 0) tile_of_block = atomicAdd(&ticket, 1);
  __syncthreads();
  const int tile = tile_of_block, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  // A warp has a run of 1024 elements; in a round its lanes hold neighbouring packs.
  const int64_t first = static_cast<int64_t>(tile) * TILE + warp * LANES * PER_THREAD + lane * WIDTH;

  float values[ROUNDS][WIDTH];
#pragma unroll
  for (int round = 0; round < ROUNDS; ++round) {
    const int64_t at = first + round * LANES * WIDTH;
    if (WIDTH > 1 && at + WIDTH <= n) {
      alignas(16) T pack[WIDTH];
      *reinterpret_cast<uint4*>(pack) = *reinterpret_cast<const uint4*>(x + at);
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) values[round][i] = static_cast<float>(pack[i]);
    } else {
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) values[round][i] = at + i < n ? static_cast<float>(x[at + i]) : 0.0f;
    }
  }

  // Inside the warp: each pack one after the other, then the packs' sums of a round over lanes, then the rounds.
  float offset[ROUNDS], sum = 0.0f;
#pragma unroll
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int i = 1; i < WIDTH; ++i) values[round][i] += values[round][i - 1];
    const float upto = scan_warp(values[round][WIDTH - 1]);
    const float left = __shfl_up_sync(ALL, upto, 1);
    offset[round] = sum + (lane > 0 ? left : 0.0f);
    sum += __shfl_sync(ALL, upto, LANES - 1);
  }
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();

  if (warp == 0) {
    const float all = sum_warp(lane < SCAN_WARPS ? of_warps[lane] : 0.0f);
    volatile State* mine = states + tile;
    if (lane == 0 && tile > 0) *mine = pack(SUM_KNOWN, all);
    const float before = look_back(tile);
    if (lane == 0) {
      *mine = pack(PREFIX_KNOWN, before + all);
      before_tile = before;
    }
  }
  __syncthreads();

  float before = before_tile;
  for (int other = 0; other < warp; ++other) before += of_warps[other];
#pragma unroll
  for (int round = 0; round < ROUNDS; ++round) {
    const int64_t at = first + round * LANES * WIDTH;
    const float start = before + offset[round];
    if (WIDTH > 1 && at + WIDTH <= n) {
      alignas(16) T pack[WIDTH];
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) pack[i] = static_cast<T>(start + values[round][i]);
      *reinterpret_cast<uint4*>(prefix + at) = *reinterpret_cast<const uint4*>(pack);
    } else {
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) {
        if (at + i < n) prefix[at + i] = static_cast<T>(start + values[round][i]);
      }
    }
  }
}

// --- histogram ----------------------------------------------------------------------------------------------------------

constexpr int COUNT_THREADS = 256;
constexpr int KEYS = 16;  // In a load of 16 bytes.
constexpr int LOADS = 4;  // On their way at the same time.

__device__ void count_word(int (*counters)[LANES], unsigned word) {
  const int lane = threadIdx.x % LANES;
#pragma unroll
  for (int i = 0; i < 4; ++i) atomicAdd(&counters[word >> 8 * i & 255][lane], 1);
}

__device__ void count_pack(int (*counters)[LANES], uint4 pack) {
  count_word(counters, pack.x);
  count_word(counters, pack.y);
  count_word(counters, pack.z);
  count_word(counters, pack.w);
}

// `head` keys come before the first multiple of 16 bytes; they and the last ones are counted one by one.
__global__ void __launch_bounds__(COUNT_THREADS)
    count_kernel(const uint8_t* keys, int* counts, int64_t m, int64_t head) {
  __shared__ int counters[BINS][LANES];
  for (int i = threadIdx.x; i < BINS * LANES; i += COUNT_THREADS) counters[i / LANES][i % LANES] = 0;
  __syncthreads();
  const int lane = threadIdx.x % LANES;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * COUNT_THREADS + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * COUNT_THREADS;
  const int64_t packs = (m - head) / KEYS;
  const uint4* from = reinterpret_cast<const uint4*>(keys + head);
  int64_t next = thread;
  for (; next + (LOADS - 1) * threads < packs; next += LOADS * threads) {
    uint4 loaded[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) loaded[i] = from[next + i * threads];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) count_pack(counters, loaded[i]);
  }
  for (; next < packs; next += threads) count_pack(counters, from[next]);
  for (int64_t i = thread; i < head; i += threads) atomicAdd(&counters[keys[i]][lane], 1);
  for (int64_t i = head + packs * KEYS + thread; i < m; i += threads) atomicAdd(&counters[keys[i]][lane], 1);
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += COUNT_THREADS) {
    int all = 0;
    // Each thread begins at another lane, so that neighbours read different banks.
    for (int i = 0; i < LANES; ++i) all += counters[bin][(bin + i) % LANES];
    if (all) atomicAdd(&counts[bin], all);
  }
}

// --- launcher -----------------------------------------------------------------------------------------------------------

__global__ void clear_kernel(int64_t tiles, int* counts) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread < tiles) states[thread] = 0;
  if (thread < BINS) counts[thread] = 0;
  if (thread == 0) ticket = 0;
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  const int64_t tiles = (n + TILE - 1) / TILE;
  if (tiles > MOST_TILES) return;
  const int64_t cleared = tiles > BINS ? tiles : BINS;
  clear_kernel<<<static_cast<unsigned>((cleared + 255) / 256), 256, 0, stream>>>(tiles, counts);

  constexpr int WIDTH = 16 / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(prefix);
  if (begins % 16 == 0) {
    scan_kernel<T, WIDTH><<<static_cast<unsigned>(tiles), SCAN_THREADS, 0, stream>>>(x, prefix, n);
  } else {
    scan_kernel<T, 1><<<static_cast<unsigned>(tiles), SCAN_THREADS, 0, stream>>>(x, prefix, n);
  }

  int device = 0, processors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const int64_t to_boundary = (16 - reinterpret_cast<uintptr_t>(keys) % 16) % 16, head = to_boundary < m ? to_boundary : m;
  const int64_t wanted = (m + COUNT_THREADS * KEYS - 1) / (COUNT_THREADS * KEYS), most = 4 * processors;
  const unsigned blocks = static_cast<unsigned>(wanted < most ? wanted : most);
  count_kernel<<<blocks, COUNT_THREADS, 0, stream>>>(keys, counts, m, head);
}
