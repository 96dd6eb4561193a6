// Scan and histogram, the staff kernels: prefix[i] = x[0] + ... + x[i], and counts[v] = how many keys are v.
//
// The scan reads and writes every element once, in tiles. Tiles are numbered by a ticket, in the order in which blocks ask for
// them, so that a block waits only for blocks that run already. A state is one word of 64 bits, flag and value, so that both come
// together. There are two forms.
//
// On a GPU, where x and prefix begin at multiples of 16 bytes and are not short, a block has a multiprocessor for itself and takes
// tile after tile (`scan_stream`). Its warps have trades and hand tiles of 24 KiB on, in nine places of shared memory: one warp
// takes tickets and has the copy engine load; eight add up a tile as soon as it is there, and publish its sum; one looks back;
// sixteen scan and store. Nobody's sum waits for anybody's look-back, and a tile that waits for its neighbours costs nothing but
// its place. And looking back ends at the block's own last tile: what stood before that one is known, and there are sums for what
// came since. So nothing but sums is published, and what is handed on takes one way through memory, not a chain of them.
//
// Otherwise, and in the CPU lane's emulator, a block has one tile of 16384 elements, which it scans in registers (`scan_kernel`). A
// warp reads the states of the 32 tiles before, adds their sums up to the nearest one that knows all that is before it, and
// publishes that in turn.
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

// --- scan, a tile for a block -------------------------------------------------------------------------------------------

constexpr int SCAN_THREADS = 512;
constexpr int SCAN_WARPS = SCAN_THREADS / LANES;
constexpr int PER_THREAD = 32;
constexpr int TILE = SCAN_THREADS * PER_THREAD;

constexpr unsigned SUM_KNOWN = 1;     // The value is the sum of the tile.
constexpr unsigned PREFIX_KNOWN = 2;  // The value is the sum of the tile and of all before it.

using State = unsigned long long;

constexpr int64_t MOST_TILES = 1 << 20;  // 24 GiB at least.
__device__ State states[MOST_TILES];
__device__ int ticket;

// Before a call's first kernel reads them, all states of its tiles are zero, and so is the ticket.
__global__ void clear_kernel(int64_t tiles, int* counts) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread < tiles) states[thread] = 0;
  if (thread < BINS) counts[thread] = 0;
  if (thread == 0) ticket = 0;
}

void clear(int64_t tiles, int* counts, cudaStream_t stream) {
  const int64_t cleared = tiles > BINS ? tiles : BINS;
  clear_kernel<<<static_cast<unsigned>((cleared + 255) / 256), 256, 0, stream>>>(tiles, counts);
}

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

// --- scan, a stream of tiles for a block: GPUs only ---------------------------------------------------------------------

#ifndef CUDA_EMULATOR

constexpr int SCANNERS = 16;  // Warps of each trade; one more loads, and one looks back.
constexpr int SUMMERS = 8;
constexpr int STREAM_THREADS = (SCANNERS + SUMMERS + 2) * LANES;
constexpr int PLACES = 9;
constexpr int PLACE_BYTES = 24 * 1024;
constexpr int ROUNDS = PLACE_BYTES / 16 / LANES / SCANNERS;  // Packs of 16 bytes that a scanner's lane has of a tile.
constexpr int GROUPS = 5;  // Of 32 states, read at once: more than there are multiprocessors.
constexpr int NO_MORE = -1;

// Barriers in shared memory. A phase of one is over when all have arrived and all bytes that were announced are there; the
// phases of one barrier have the parities 0, 1, 0, ...
__device__ unsigned address_of(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ void barrier_init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(arrivals) : "memory");
}

__device__ void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}

__device__ void barrier_arrive_and_expect(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}

__device__ void barrier_wait(uint64_t* barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(address_of(barrier)), "r"(parity)
                 : "memory");
  } while (!done);
}

// The copy engine fetches `bytes`, and tells the barrier.
__device__ void load_bulk(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(to)),
               "l"(from), "r"(bytes), "r"(address_of(barrier))
               : "memory");
}

// A state says all there is to say in one word, so that nothing has to be ordered around it.
__device__ State read_state(int tile) {
  State state;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(state) : "l"(states + tile) : "memory");
  return state;
}
__device__ void publish(int tile, State state) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(states + tile), "l"(state) : "memory");
}

// The sum of tiles `from` to `to` - 1, as soon as all of them are known; called by one warp.
__device__ float sum_between(int from, int to) {
  const int lane = threadIdx.x % LANES;
  float sum = 0.0f;
  for (int start = from; start < to; start += GROUPS * LANES) {
    State read[GROUPS];
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) read[i] = start + i * LANES + lane < to ? 0 : pack(SUM_KNOWN, 0.0f);
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int i = 0; i < GROUPS; ++i) {
        if (flag_of(read[i]) == 0) read[i] = read_state(start + i * LANES + lane);
      }
#pragma unroll
      for (int i = 0; i < GROUPS; ++i) missing |= flag_of(read[i]) == 0;
    } while (__any_sync(ALL, missing));
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) sum += value_of(read[i]);
  }
  return sum_warp(sum);
}

// By value: of a reference to shared memory the compiler makes a load for every element, where T has 16 bits.
template <typename T, int WIDTH>
__device__ void widen(uint4 raw, float (&into)[WIDTH]) {
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) into[i] = static_cast<float>(reinterpret_cast<const T*>(&raw)[i]);
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(STREAM_THREADS, 1) scan_stream(const T* x, T* prefix, int64_t n, int tiles) {
  constexpr int PLACE_PACKS = PLACE_BYTES / 16, RUN_PACKS = ROUNDS * LANES, TILE_SIZE = PLACE_PACKS * WIDTH;
  constexpr int BATCH = 3;  // Rounds that a scanner has in its registers.
  static_assert(ROUNDS % BATCH == 0 && SCANNERS % SUMMERS == 0 && SCANNERS <= LANES, "whole batches, whole runs, one lane each");
  extern __shared__ __align__(128) uint4 room[];
  // Of each place: its tile has come; it has been added up; what is before it is known; all are done with it.
  __shared__ uint64_t full[PLACES], summed[PLACES], ready[PLACES], empty[PLACES];
  __shared__ int tile_in[PLACES];
  __shared__ float of_runs[PLACES][SCANNERS];  // Sums of the runs that the scanners have.
  __shared__ float before_tile[PLACES];
  if (threadIdx.x == 0) {
    for (int place = 0; place < PLACES; ++place) {
      barrier_init(full + place, 1);
      barrier_init(summed + place, SUMMERS);
      barrier_init(ready + place, 1);
      barrier_init(empty + place, SCANNERS + 1);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  // Every warp goes through the places in the same order, at its own pace.
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  int place = 0;
  unsigned turn = 0;
  const auto advance = [&] {
    if (++place == PLACES) place = 0, turn ^= 1;
  };
  const auto next_tile = [&] {
    barrier_wait(full + place, turn);
    return tile_in[place];
  };

  if (warp < SCANNERS) {
    for (int tile; (tile = next_tile()) != NO_MORE; advance()) {
      const uint4* from = room + place * PLACE_PACKS + warp * RUN_PACKS + lane;
      const int64_t first = static_cast<int64_t>(tile) * TILE_SIZE + (warp * RUN_PACKS + lane) * WIDTH;
      const bool whole = (static_cast<int64_t>(tile) + 1) * TILE_SIZE <= n;
      barrier_wait(summed + place, turn);
      const float of_others = sum_warp(lane < warp ? of_runs[place][lane] : 0.0f);
      barrier_wait(ready + place, turn);
      float before = before_tile[place] + of_others;
#pragma unroll 1
      for (int start = 0; start < ROUNDS; start += BATCH) {
        // Each pack one after the other, then the packs' sums of a round over lanes, then the rounds.
        float values[BATCH][WIDTH], upto[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
          widen<T, WIDTH>(from[(start + i) * LANES], values[i]);
#pragma unroll
          for (int j = 1; j < WIDTH; ++j) values[i][j] += values[i][j - 1];
          upto[i] = scan_warp(values[i][WIDTH - 1]);
        }
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
          const float left = __shfl_up_sync(ALL, upto[i], 1);
          const float begin = before + (lane > 0 ? left : 0.0f);
          before += __shfl_sync(ALL, upto[i], LANES - 1);
          alignas(16) T pack[WIDTH];
#pragma unroll
          for (int j = 0; j < WIDTH; ++j) pack[j] = static_cast<T>(begin + values[i][j]);
          const int64_t at = first + (start + i) * LANES * WIDTH;
          if (whole || at + WIDTH <= n) {
            *reinterpret_cast<uint4*>(prefix + at) = *reinterpret_cast<const uint4*>(pack);
          } else {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
              if (at + j < n) prefix[at + j] = pack[j];
            }
          }
        }
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(empty + place);
    }
  } else if (warp < SCANNERS + SUMMERS) {
    constexpr int RUNS = SCANNERS / SUMMERS;
    const int summer = warp - SCANNERS;
    for (int tile; (tile = next_tile()) != NO_MORE; advance()) {
#pragma unroll
      for (int run = summer * RUNS; run < (summer + 1) * RUNS; ++run) {
        const uint4* from = room + place * PLACE_PACKS + run * RUN_PACKS + lane;
        float sums[WIDTH] = {}, values[WIDTH];
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
          widen<T, WIDTH>(from[round * LANES], values);
#pragma unroll
          for (int j = 0; j < WIDTH; ++j) sums[j] += values[j];
        }
#pragma unroll
        for (int step = WIDTH / 2; step > 0; step /= 2) {
#pragma unroll
          for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
        }
        const float sum = sum_warp(sums[0]);
        if (lane == 0) of_runs[place][run] = sum;
      }
      if (lane == 0) barrier_arrive(summed + place);
      if (summer == 0) {
        barrier_wait(summed + place, turn);
        const float all = sum_warp(lane < SCANNERS ? of_runs[place][lane] : 0.0f);
        if (lane == 0) {
          publish(tile, pack(SUM_KNOWN, all));
          barrier_arrive(empty + place);
        }
      }
    }
  } else if (warp == SCANNERS + SUMMERS) {
    float before = 0.0f;
    int last = 0;  // `before` is what stands before this tile.
    for (int tile; (tile = next_tile()) != NO_MORE; advance()) {
      before += sum_between(last, tile);
      last = tile;
      if (lane == 0) {
        before_tile[place] = before;
        barrier_arrive(ready + place);
      }
    }
  } else {
    for (;; advance()) {
      barrier_wait(empty + place, turn ^ 1);
      // Not before there is a place for it: others wait for a tile from the moment its ticket is taken.
      const int tile = __shfl_sync(ALL, lane == 0 ? atomicAdd(&ticket, 1) : 0, 0);
      if (tile >= tiles) break;
      const int64_t first = static_cast<int64_t>(tile) * TILE_SIZE;
      const int here = n - first < TILE_SIZE ? static_cast<int>(n - first) : TILE_SIZE, in_packs = here / WIDTH * WIDTH;
      if (here < TILE_SIZE) {  // The last tile: no whole pack, and zeros behind it.
        T* to = reinterpret_cast<T*>(room + place * PLACE_PACKS);
        for (int i = in_packs + lane; i < TILE_SIZE; i += LANES) to[i] = i < here ? x[first + i] : static_cast<T>(0.0f);
        __syncwarp();
      }
      if (lane == 0) {
        tile_in[place] = tile;
        barrier_arrive_and_expect(full + place, in_packs * static_cast<int>(sizeof(T)));
        if (in_packs > 0) {
          load_bulk(room + place * PLACE_PACKS, x + first, in_packs * static_cast<int>(sizeof(T)), full + place);
        }
      }
    }
    if (lane == 0) {
      tile_in[place] = NO_MORE;
      barrier_arrive(full + place);
    }
  }
}

#endif

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

int multiprocessors() {
  int device = 0, processors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  return processors;
}

template <typename T>
void launch_scan(const T* x, T* prefix, int* counts, int64_t n, cudaStream_t stream) {
  constexpr int WIDTH = 16 / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(prefix);
#ifndef CUDA_EMULATOR
  if (begins % 16 == 0 && n > TILE) {
    constexpr int BYTES = PLACES * PLACE_BYTES, STREAM_TILE = PLACE_BYTES / sizeof(T);
    const int64_t tiles = (n + STREAM_TILE - 1) / STREAM_TILE, most = multiprocessors(), blocks = tiles < most ? tiles : most;
    if (tiles > MOST_TILES) return;
    clear(tiles, counts, stream);
    cudaFuncSetAttribute(scan_stream<T, WIDTH>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    scan_stream<T, WIDTH><<<static_cast<unsigned>(blocks), STREAM_THREADS, BYTES, stream>>>(x, prefix, n, static_cast<int>(tiles));
    return;
  }
#endif
  const int64_t tiles = (n + TILE - 1) / TILE;
  if (tiles > MOST_TILES) return;
  clear(tiles, counts, stream);
  if (begins % 16 == 0) {
    scan_kernel<T, WIDTH><<<static_cast<unsigned>(tiles), SCAN_THREADS, 0, stream>>>(x, prefix, n);
  } else {
    scan_kernel<T, 1><<<static_cast<unsigned>(tiles), SCAN_THREADS, 0, stream>>>(x, prefix, n);
  }
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  launch_scan(x, prefix, counts, n, stream);

  const int64_t to_boundary = (16 - reinterpret_cast<uintptr_t>(keys) % 16) % 16, head = to_boundary < m ? to_boundary : m;
  const int64_t wanted = (m + COUNT_THREADS * KEYS - 1) / (COUNT_THREADS * KEYS), most = 4 * multiprocessors();
  const unsigned blocks = static_cast<unsigned>(wanted < most ? wanted : most);
  count_kernel<<<blocks, COUNT_THREADS, 0, stream>>>(keys, counts, m, head);
}
