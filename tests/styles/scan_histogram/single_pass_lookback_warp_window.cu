// Single-pass scan: tiles by ticket, a warp looks back over 32 states at once; the histogram has a copy of the bins
// per warp.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace detail {

constexpr int WARP = 32;
constexpr int BLOCK_THREADS = 256;
constexpr int WARPS = BLOCK_THREADS / WARP;
constexpr int ITEMS = 16;
constexpr int TILE_ITEMS = BLOCK_THREADS * ITEMS;
constexpr unsigned FULL = 0xffffffffu;

// A state is 64 bits, written at once: the upper word says what the lower word holds.
enum : unsigned { EMPTY = 0, AGGREGATE = 1, INCLUSIVE = 2 };

__device__ __forceinline__ unsigned long long pack(unsigned status, float value) {
  return (static_cast<unsigned long long>(status) << 32) | __float_as_uint(value);
}

__device__ __forceinline__ float inclusive_warp_scan(float value, int lane) {
#pragma unroll
  for (int delta = 1; delta < WARP; delta *= 2) {
    const float left = __shfl_up_sync(FULL, value, delta);
    if (lane >= delta) value += left;
  }
  return value;
}

// Called by one whole warp. The sum of everything in front of the tile.
__device__ float look_back(volatile unsigned long long* states, int tile, int lane) {
  float exclusive = 0.0f;
  for (int newest = tile - 1; newest >= 0; newest -= WARP) {
    const int at = newest - lane;
    unsigned long long state = pack(INCLUSIVE, 0.0f);  // In front of the first tile there is nothing.
    if (at >= 0) state = states[at];
    while (__any_sync(FULL, static_cast<unsigned>(state >> 32) == EMPTY)) {
      __nanosleep(20);
      if (at >= 0) state = atomicAdd(const_cast<unsigned long long*>(&states[at]), 0ull);
    }
    const float value = __uint_as_float(static_cast<unsigned>(state));
    const unsigned complete = __ballot_sync(FULL, static_cast<unsigned>(state >> 32) == INCLUSIVE);
    // Lanes up to the first complete state count; older ones are in it.
    const int last = complete == 0 ? WARP - 1 : __ffs(static_cast<int>(complete)) - 1;
    float sum = lane <= last ? value : 0.0f;
#pragma unroll
    for (int delta = WARP / 2; delta > 0; delta /= 2) sum += __shfl_xor_sync(FULL, sum, delta);
    exclusive += sum;
    if (complete != 0) break;
  }
  return exclusive;
}

template <typename T>
__global__ void __launch_bounds__(BLOCK_THREADS) scan_tiles(const T* __restrict__ x, T* __restrict__ prefix,
                                                            unsigned long long* states, unsigned* ticket, int64_t n) {
  __shared__ float staged[TILE_ITEMS + TILE_ITEMS / WARP];  // One float of padding after every 32.
  __shared__ float warp_sums[WARPS];
  __shared__ float tile_prefix;
  __shared__ int tile_number;
  const int thread = threadIdx.x, lane = thread % WARP, warp = thread / WARP;

  if (thread == 0) tile_number = static_cast<int>(atomicAdd(ticket, 1u));
  __syncthreads();
  const int tile = tile_number;
  const int64_t base = static_cast<int64_t>(tile) * TILE_ITEMS;

  // Striped loads, blocked items: the exchange goes through shared memory.
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int i = k * BLOCK_THREADS + thread;
    staged[i + i / WARP] = base + i < n ? static_cast<float>(x[base + i]) : 0.0f;
  }
  __syncthreads();
  float item[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int i = thread * ITEMS + k;
    item[k] = staged[i + i / WARP];
    if (k > 0) item[k] += item[k - 1];
  }

  const float upto = inclusive_warp_scan(item[ITEMS - 1], lane);
  if (lane == WARP - 1) warp_sums[warp] = upto;
  __syncthreads();
  float before_warp = 0.0f, aggregate = 0.0f;
#pragma unroll
  for (int w = 0; w < WARPS; ++w) {
    if (w == warp) before_warp = aggregate;
    aggregate += warp_sums[w];
  }
  float before_thread = __shfl_up_sync(FULL, upto, 1);
  if (lane == 0) before_thread = 0.0f;

  if (warp == 0) {
    if (tile == 0) {
      if (lane == 0) {
        atomicExch(&states[0], pack(INCLUSIVE, aggregate));
        tile_prefix = 0.0f;
      }
    } else {
      if (lane == 0) atomicExch(&states[tile], pack(AGGREGATE, aggregate));
      const float exclusive = look_back(states, tile, lane);
      if (lane == 0) {
        atomicExch(&states[tile], pack(INCLUSIVE, exclusive + aggregate));
        tile_prefix = exclusive;
      }
    }
  }
  __syncthreads();

  const float carry = tile_prefix + before_warp + before_thread;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int i = thread * ITEMS + k;
    staged[i + i / WARP] = carry + item[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int i = k * BLOCK_THREADS + thread;
    if (base + i < n) prefix[base + i] = static_cast<T>(staged[i + i / WARP]);
  }
}

__global__ void __launch_bounds__(BLOCK_THREADS) count_keys(const uint8_t* __restrict__ keys, int* counts, int64_t m) {
  __shared__ int bins[WARPS][256];
  const int warp = threadIdx.x / WARP;
  for (int i = threadIdx.x; i < WARPS * 256; i += BLOCK_THREADS) bins[i / 256][i % 256] = 0;
  __syncthreads();

  const int64_t rank = static_cast<int64_t>(blockIdx.x) * BLOCK_THREADS + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * BLOCK_THREADS;
  const bool wide = reinterpret_cast<uintptr_t>(keys) % 16 == 0;
  const int64_t packs = wide ? m / 16 : 0;
  for (int64_t p = rank; p < packs; p += threads) {
    const uint4 sixteen = reinterpret_cast<const uint4*>(keys)[p];
    const unsigned words[4] = {sixteen.x, sixteen.y, sixteen.z, sixteen.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
      for (int b = 0; b < 4; ++b) atomicAdd(&bins[warp][(words[w] >> (8 * b)) & 255u], 1);
    }
  }
  for (int64_t i = packs * 16 + rank; i < m; i += threads) atomicAdd(&bins[warp][keys[i]], 1);
  __syncthreads();

  int sum = 0;
#pragma unroll
  for (int w = 0; w < WARPS; ++w) sum += bins[w][threadIdx.x];
  if (sum != 0) atomicAdd(&counts[threadIdx.x], sum);
}

}  // namespace detail

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m,
                    cudaStream_t stream) {
  using namespace detail;
  static unsigned long long* states = nullptr;
  static int64_t capacity = 0;
  const int64_t tiles = (n + TILE_ITEMS - 1) / TILE_ITEMS;
  if (tiles + 1 > capacity) {
    if (states != nullptr) cudaFree(states);
    capacity = 2 * tiles + 1;
    cudaMalloc(reinterpret_cast<void**>(&states), capacity * sizeof(unsigned long long));
  }
  // The ticket stands behind the states of this call, so that one memset clears both.
  cudaMemsetAsync(states, 0, (tiles + 1) * sizeof(unsigned long long), stream);
  cudaMemsetAsync(counts, 0, 256 * sizeof(int32_t), stream);
  unsigned* ticket = reinterpret_cast<unsigned*>(states + tiles);
  scan_tiles<T><<<static_cast<unsigned>(tiles), BLOCK_THREADS, 0, stream>>>(x, prefix, states, ticket, n);

  int64_t blocks = (m + 16 * BLOCK_THREADS - 1) / (16 * BLOCK_THREADS);
  if (blocks > 132 * 8) blocks = 132 * 8;
  count_keys<<<static_cast<unsigned>(blocks), BLOCK_THREADS, 0, stream>>>(keys, counts, m);
}
