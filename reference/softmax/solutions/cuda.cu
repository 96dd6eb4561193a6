// Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / sum_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].
//
// A row that fits the registers of one block is read once and written once, which is the least there is. A longer one, up to
// 448 KiB, is held by a cluster of two blocks that have a multiprocessor each, in shared memory: read once and written once
// too. Such a pair takes a row after the other. Each block cuts its half into chunks of 16 KiB, for which there are 14 places.
// One warp has the copy engine load them, in the order of the rows, into whatever place is free: of a row of 256 KiB a half
// takes 8 places, so the next row comes in while this one waits for its maximum and its sum, and memory has to do at any time.
// (The CPU lane's emulator knows neither clusters nor the copy engine. There one block holds a row of up to 256 KiB, most of
// it in shared memory, and loads the next one into the places that the last one leaves.) What is longer still, or has no
// whole packs of 16 bytes, is read twice. Long rows go through the online form: every thread carries a maximum m and a sum s
// over what it has seen,
//
//     m' = max(m, max of the pack),    s' = s * exp(m - m') + sum of exp(pack - m'),
//
// and the parts of a warp and of a row are brought together by the same rule. Loads and stores are of 16 bytes wherever rows
// begin at multiples of 16 bytes and have whole packs; otherwise of one element.
//
// Source of the online form: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int PACK_BYTES = 16;
constexpr int SHORT_THREADS = 512;
constexpr int SHORT_BLOCKS = 4;  // Of one multiprocessor, at once.
constexpr int SHORT_PACKS = 2;  // Packs of a row that a thread holds in registers.
constexpr int LONG_THREADS = 1024;

// What a thread loads and stores at once.
template <typename T, int WIDTH>
struct Pack {
  uint4 raw;
};
template <typename T>
struct Pack<T, 1> {
  T raw;
};

// Columns at or beyond the row's end count as -inf.
template <typename T, int WIDTH>
__device__ Pack<T, WIDTH> load_pack(const T* from, bool inside) {
  Pack<T, WIDTH> pack;
  if (inside) {
    pack.raw = *reinterpret_cast<const decltype(pack.raw)*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&pack)[i] = static_cast<T>(-INFINITY);
  }
  return pack;
}

template <typename T, int WIDTH>
__device__ void widen(const Pack<T, WIDTH>& pack, float (&into)[WIDTH]) {
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) into[i] = static_cast<float>(reinterpret_cast<const T*>(&pack)[i]);
}

template <typename T, int WIDTH>
__device__ void store_pack(T* to, const float (&from)[WIDTH]) {
  Pack<T, WIDTH> pack;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&pack)[i] = static_cast<T>(from[i]);
  *reinterpret_cast<decltype(pack.raw)*>(to) = pack.raw;
}

// --- short rows ---------------------------------------------------------------------------------------------------------

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Bring one value of every thread together by shuffles, and one of every warp by shared memory, which nobody else may use;
// all threads get the result.
template <int THREADS, typename Combine>
__device__ float over_block(float value, Combine combine, float* of_warps) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warps[0];
#pragma unroll
  for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, of_warps[warp]);
  return value;
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(SHORT_THREADS, SHORT_BLOCKS)
    softmax_short(const T* x, T* out, int cols, int64_t x_row_stride, int64_t out_row_stride) {
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  // Each reduction has its own: a warp that is ahead must not write what one that is behind still reads.
  __shared__ float maxima[SHORT_THREADS / 32], sums[SHORT_THREADS / 32];
  Pack<T, WIDTH> packs[SHORT_PACKS];
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    const int column = (pack * SHORT_THREADS + threadIdx.x) * WIDTH;
    packs[pack] = load_pack<T, WIDTH>(x + column, column < cols);
  }
  float values[SHORT_PACKS][WIDTH];
  float largest = -INFINITY, total = 0.0f;
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    widen(packs[pack], values[pack]);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) largest = fmaxf(largest, values[pack][i]);
  }
  largest = over_block<SHORT_THREADS>(largest, Larger(), maxima);
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      values[pack][i] = __expf(values[pack][i] - largest);
      total += values[pack][i];
    }
  }
  const float scale = 1.0f / over_block<SHORT_THREADS>(total, Plus(), sums);
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    const int column = (pack * SHORT_THREADS + threadIdx.x) * WIDTH;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) values[pack][i] *= scale;
    if (column < cols) store_pack<T, WIDTH>(out + column, values[pack]);
  }
}

// --- long rows ----------------------------------------------------------------------------------------------------------

// A maximum, and the sum of exponentials against it.
struct Part {
  float largest, total;
};

// While only -inf was seen, -inf - -inf must not become NaN.
__device__ float pivot_of(float largest) { return largest == -INFINITY ? 0.0f : largest; }

template <int WIDTH>
__device__ void take(Part& part, const float (&values)[WIDTH]) {
  float raised = part.largest;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) raised = fmaxf(raised, values[i]);
  const float pivot = pivot_of(raised);
  part.total *= __expf(part.largest - pivot);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) part.total += __expf(values[i] - pivot);
  part.largest = raised;
}

__device__ Part over_warp(Part part) {
  float largest = part.largest;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  float total = part.total * __expf(part.largest - pivot_of(largest));
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  return {largest, total};
}

// The part of all threads, for all of them.
template <int THREADS>
__device__ Part over_block(Part part, Part* of_warps) {
  part = over_warp(part);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = part;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  return over_warp(lane < THREADS / 32 ? of_warps[lane] : Part{-INFINITY, 0.0f});
}

// A pack of the row's quotients.
template <typename T, int WIDTH>
__device__ void write_pack(T* to, const Pack<T, WIDTH>& pack, float largest, float scale) {
  float values[WIDTH];
  widen(pack, values);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) values[i] = __expf(values[i] - largest) * scale;
  store_pack<T, WIDTH>(to, values);
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    softmax_twice(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  constexpr int64_t STEP = static_cast<int64_t>(LONG_THREADS) * WIDTH;
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  __shared__ Part of_warps[LONG_THREADS / 32];
  float values[WIDTH];
  Part part = {-INFINITY, 0.0f};
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    widen(load_pack<T, WIDTH>(x + column, true), values);
    take(part, values);
  }
  const Part row = over_block<LONG_THREADS>(part, of_warps);
  const float scale = 1.0f / row.total;
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    write_pack<T, WIDTH>(out + column, load_pack<T, WIDTH>(x + column, true), row.largest, scale);
  }
}

#ifdef CUDA_EMULATOR

constexpr int SHARED_PACKS = 14;  // Of a thread's packs of a long row; the others are in registers.
constexpr int KEPT_PACKS = 2;
constexpr int LONG_PACKS = SHARED_PACKS + KEPT_PACKS;
constexpr int GROUP = 2;  // Packs whose loads are on the way while as many are worked on.

// One block to a multiprocessor, a row after the other.
template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    softmax_on_chip(const T* x, T* out, int rows, int cols, int64_t x_row_stride, int64_t out_row_stride) {
  constexpr int STEP = LONG_THREADS * WIDTH;
  extern __shared__ uint4 room[];
  auto* held = reinterpret_cast<Pack<T, WIDTH>*>(room) + threadIdx.x;
  // Rows take turns: the next one's parts must not be written where some threads still read this one's.
  __shared__ Part of_warps[2][LONG_THREADS / 32];
  const int first = threadIdx.x * WIDTH;
  Pack<T, WIDTH> kept[KEPT_PACKS], next[GROUP];
  float values[WIDTH];
  Part part = {-INFINITY, 0.0f};
  const auto place_of = [&](int pack) -> Pack<T, WIDTH>& {
    return pack < SHARED_PACKS ? held[pack * LONG_THREADS] : kept[pack < SHARED_PACKS ? 0 : pack - SHARED_PACKS];
  };
  // `from` is the row that comes, `to` the row that goes; the first time none goes, the last time none comes.
  const auto pass = [&](const T* from, T* to, float largest, float scale) {
#pragma unroll
    for (int start = 0; start < LONG_PACKS; start += GROUP) {
      if (start * STEP >= cols) break;
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        const int column = first + (start + i) * STEP;
        next[i] = load_pack<T, WIDTH>(from + column, from && column < cols);
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        const int column = first + (start + i) * STEP;
        if (to && column < cols) write_pack<T, WIDTH>(to + column, place_of(start + i), largest, scale);
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        place_of(start + i) = next[i];
        widen(next[i], values);
        take(part, values);
      }
    }
  };
  pass(x + blockIdx.x * x_row_stride, nullptr, 0.0f, 0.0f);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    const Part whole = over_block<LONG_THREADS>(part, of_warps[turn]);
    const int64_t after = row + gridDim.x;
    part = {-INFINITY, 0.0f};
    pass(after < rows ? x + after * x_row_stride : nullptr, out + row * out_row_stride, whole.largest, 1.0f / whole.total);
  }
}

template <typename T, int WIDTH>
constexpr int64_t MOST_COLS = LONG_PACKS * LONG_THREADS * WIDTH;

template <typename T, int WIDTH>
void launch_long(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
                 int multiprocessors, cudaStream_t stream) {
  constexpr int BYTES = SHARED_PACKS * LONG_THREADS * PACK_BYTES;
  cudaFuncSetAttribute(softmax_on_chip<T, WIDTH>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
  const unsigned grid = static_cast<unsigned>(rows < multiprocessors ? rows : multiprocessors);
  softmax_on_chip<T, WIDTH><<<grid, LONG_THREADS, BYTES, stream>>>(x, out, rows, cols, x_row_stride, out_row_stride);
}

#else

constexpr int PAIR_WARPS = 16;  // That compute, in each of the two blocks; one more loads.
constexpr int PAIR_THREADS = PAIR_WARPS * 32;
constexpr int CHUNK_PACKS = 1024;
constexpr int CHUNK_EACH = CHUNK_PACKS / PAIR_THREADS;  // Packs of a thread.
constexpr int CHUNK_BYTES = CHUNK_PACKS * PACK_BYTES;
constexpr int PLACES = 14;
constexpr float LOG2_E = 1.4426950408889634f;

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

// Where the cluster's other block tells the barrier: what it sent is seen afterwards. That costs what the L1 cache holds, so that
// it is not for every wait.
__device__ void barrier_wait_for_cluster(uint64_t* barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address_of(barrier)), "r"(parity)
        : "memory");
  } while (!done);
}

__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The copy engine fetches `bytes`, and tells the barrier.
__device__ void load_bulk(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(to)),
               "l"(from), "r"(bytes), "r"(address_of(barrier))
               : "memory");
}

// Put a part where `place` is in the block of that rank, and tell the barrier there.
__device__ void send(Part part, Part* place, uint64_t* barrier, int rank) {
  unsigned to, tell;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(address_of(place)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(tell) : "r"(address_of(barrier)), "r"(rank));
  const uint64_t bits = static_cast<uint64_t>(__float_as_uint(part.total)) << 32 | __float_as_uint(part.largest);
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to), "l"(bits), "r"(tell)
               : "memory");
}

// 2^x in one instruction; below 2^-126 it is 0.
__device__ float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

template <typename Pair>
__device__ float largest_of(const Pair (&pairs)[4]) {
  const Pair largest = __hmax2(__hmax2(pairs[0], pairs[1]), __hmax2(pairs[2], pairs[3]));
  return fmaxf(static_cast<float>(largest.x), static_cast<float>(largest.y));
}
__device__ float largest_of(const uint4& raw, __nv_bfloat16) {
  return largest_of(reinterpret_cast<const __nv_bfloat162(&)[4]>(raw));
}
__device__ float largest_of(const uint4& raw, __half) { return largest_of(reinterpret_cast<const __half2(&)[4]>(raw)); }
__device__ float largest_of(const uint4& raw, float) {
  return fmaxf(fmaxf(__uint_as_float(raw.x), __uint_as_float(raw.y)), fmaxf(__uint_as_float(raw.z), __uint_as_float(raw.w)));
}

// As above, with maxima in units of log2: exponentials are powers of two here, and x * log2(e) - m needs one instruction, which
// rounds once. Any m that is the same in numerator and sum gives the same quotient, so that it need not be exact.
__device__ Part over_warp_base_2(Part part) {
  float largest = part.largest;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  float total = part.total * power_of_two(part.largest - pivot_of(largest));
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  return {largest, total};
}

// A cluster of two blocks, one to a multiprocessor; each has one half of every row, `packs` packs in all.
template <typename T, int WIDTH>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(PAIR_THREADS + 32, 1)
    softmax_pair(const T* x, T* out, int64_t rows, int packs, int64_t x_row_stride, int64_t out_row_stride) {
  extern __shared__ __align__(128) uint4 room[];
  // Of each place: its chunk has come; all warps are done with it. Of each turn: the parts of all warps of both blocks are there.
  __shared__ uint64_t full[PLACES], empty[PLACES], met[2];
  // Rows take turns: the next one's parts must not be written where some threads still read this one's.
  __shared__ Part parts[2][2 * PAIR_WARPS];
  constexpr int PARTS_BYTES = sizeof(parts) / 2;
  static_assert(2 * PAIR_WARPS == 32, "a warp reads one part in each lane");

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = blockIdx.x % 2;
  const int64_t first_row = blockIdx.x / 2, step = gridDim.x / 2;
  const int half = (packs + 1) / 2, mine = rank ? packs - half : half, chunks = (half + CHUNK_PACKS - 1) / CHUNK_PACKS;
  x += static_cast<int64_t>(rank) * half * WIDTH;
  out += static_cast<int64_t>(rank) * half * WIDTH;
  if (threadIdx.x == 0) {
    for (int place = 0; place < PLACES; ++place) {
      barrier_init(full + place, 1);
      barrier_init(empty + place, PAIR_WARPS);
    }
    for (int turn = 0; turn < 2; ++turn) barrier_init(met + turn, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int turn = 0; turn < 2; ++turn) barrier_arrive_and_expect(met + turn, PARTS_BYTES);
  }
  cluster_barrier();  // The other block's barriers have to be there before anything is sent to it.

  if (warp == PAIR_WARPS) {
    int place = 0;
    unsigned round = 1;
    for (int64_t row = first_row; lane == 0 && row < rows; row += step) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        barrier_wait(empty + place, round);
        const int left = mine - chunk * CHUNK_PACKS, here = left > CHUNK_PACKS ? CHUNK_PACKS : left > 0 ? left : 0;
        barrier_arrive_and_expect(full + place, here * PACK_BYTES);
        const T* from = x + row * x_row_stride + static_cast<int64_t>(chunk) * CHUNK_PACKS * WIDTH;
        if (here) load_bulk(room + place * CHUNK_PACKS, from, here * PACK_BYTES, full + place);
        if (++place == PLACES) place = 0, round ^= 1;
      }
    }
    __syncwarp();
  } else {
    int newest = 0, oldest = 0;  // Places: of the next chunk to look at, and of the next one to write.
    unsigned round = 0;
    Part part = {-INFINITY, 0.0f};
    const auto look_at = [&](int chunk) {
      barrier_wait(full + newest, round);
      Pack<T, WIDTH> seen[CHUNK_EACH];
      float raised = part.largest;
#pragma unroll
      for (int i = 0; i < CHUNK_EACH; ++i) {
        const int at = i * PAIR_THREADS + threadIdx.x;
        const T* from = reinterpret_cast<const T*>(room + newest * CHUNK_PACKS + at);
        seen[i] = load_pack<T, WIDTH>(from, chunk * CHUNK_PACKS + at < mine);
        raised = fmaxf(raised, largest_of(seen[i].raw, T()) * LOG2_E);
      }
      const float pivot = pivot_of(raised);
      float sums[2] = {part.total * power_of_two(part.largest - pivot), 0.0f};  // Two chains of additions are shorter than one.
#pragma unroll
      for (int i = 0; i < CHUNK_EACH; ++i) {
        float values[WIDTH];
        widen(seen[i], values);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) sums[j % 2] += power_of_two(fmaf(values[j], LOG2_E, -pivot));
      }
      part = {raised, sums[0] + sums[1]};
      if (++newest == PLACES) newest = 0, round ^= 1;
    };
    const auto write = [&](T* to, int chunk, float pivot, float scale) {
#pragma unroll
      for (int i = 0; i < CHUNK_EACH; ++i) {
        const int at = i * PAIR_THREADS + threadIdx.x;
        if (chunk * CHUNK_PACKS + at < mine) {
          float values[WIDTH];
          widen(load_pack<T, WIDTH>(reinterpret_cast<const T*>(room + oldest * CHUNK_PACKS + at), true), values);
#pragma unroll
          for (int j = 0; j < WIDTH; ++j) values[j] = power_of_two(fmaf(values[j], LOG2_E, -pivot)) * scale;
          store_pack<T, WIDTH>(to + static_cast<int64_t>(chunk * CHUNK_PACKS + at) * WIDTH, values);
        }
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(empty + oldest);
      if (++oldest == PLACES) oldest = 0;
    };

    for (int chunk = 0; chunk < chunks; ++chunk) look_at(chunk);
    int turn = 0;
    unsigned meeting = 0;
    for (int64_t row = first_row; row < rows; row += step) {
      part = over_warp_base_2(part);
      if (lane < 2) send(part, &parts[turn][rank * PAIR_WARPS + warp], met + turn, lane);
      barrier_wait_for_cluster(met + turn, meeting);
      if (threadIdx.x == 0) barrier_arrive_and_expect(met + turn, PARTS_BYTES);  // For the row after the next.
      const Part whole = over_warp_base_2(parts[turn][lane]);
      const float pivot = pivot_of(whole.largest), scale = 1.0f / whole.total;
      part = Part{-INFINITY, 0.0f};
      for (int chunk = 0; chunk < chunks; ++chunk) {
        write(out + row * out_row_stride, chunk, pivot, scale);
        if (row + step < rows) look_at(chunk);
      }
      turn ^= 1;
      if (turn == 0) meeting ^= 1;
    }
  }
  cluster_barrier();  // Nobody leaves while the other one may still send.
}

template <typename T, int WIDTH>
constexpr int64_t MOST_COLS = 2 * PLACES * CHUNK_PACKS * WIDTH;

template <typename T, int WIDTH>
void launch_long(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
                 int multiprocessors, cudaStream_t stream) {
  constexpr int BYTES = PLACES * CHUNK_BYTES;
  cudaFuncSetAttribute(softmax_pair<T, WIDTH>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
  const int64_t pairs = rows < multiprocessors / 2 ? rows : multiprocessors / 2;
  softmax_pair<T, WIDTH><<<static_cast<unsigned>(2 * pairs), PAIR_THREADS + 32, BYTES, stream>>>(
      x, out, rows, static_cast<int>(cols / WIDTH), x_row_stride, out_row_stride);
}

#endif

// --- launcher -----------------------------------------------------------------------------------------------------------

template <typename T, int WIDTH>
void launch(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
            cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  if (cols <= SHORT_THREADS * SHORT_PACKS * WIDTH) {
    softmax_short<T, WIDTH><<<blocks, SHORT_THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
    return;
  }
  if constexpr (WIDTH > 1) {
    if (cols <= MOST_COLS<T, WIDTH>) {
      int device = 0, multiprocessors = 1;
      cudaGetDevice(&device);
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
      launch_long<T, WIDTH>(x, out, rows, cols, x_row_stride, out_row_stride, multiprocessors, stream);
      return;
    }
  }
  softmax_twice<T, WIDTH><<<blocks, LONG_THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out);
  const bool whole_packs = (cols | x_row_stride | out_row_stride) % WIDTH == 0;
  if (begins % PACK_BYTES == 0 && whole_packs) {
    launch<T, WIDTH>(x, out, rows, cols, x_row_stride, out_row_stride, stream);
  } else {
    launch<T, 1>(x, out, rows, cols, x_row_stride, out_row_stride, stream);
  }
}
