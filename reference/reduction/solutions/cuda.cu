// Reduction, the staff kernel: total = sum of x[i], largest = max of x[i].
//
// n·e bytes are read once, for both answers, so the time is the traffic divided by the bandwidth. Stage one: a fixed number of
// blocks strides over x in packs of 16 bytes, several of them on the way at the same time. Every thread keeps a running sum and
// maximum in registers, so that the loop has no reduction in it; at its end the 32 lanes of a warp meet by shuffles and the
// warps of a block by shared memory, and one thread writes the block's partial result. Stage two: one block folds the partial
// results. No atomics, so every call gives the same bits; and chains of additions stay short.
//
// Source: Harris, "Optimizing parallel reduction in CUDA", NVIDIA 2007; shuffles as in Luitjens, "Faster parallel reductions on
// Kepler", NVIDIA developer blog, 2014.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PACK_BYTES = 16;
constexpr int PACKS = 4;  // That a thread has on the way at the same time.
constexpr int BLOCKS_PER_MULTIPROCESSOR = 16;
constexpr int MOST_BLOCKS = 4096;
constexpr unsigned ALL_LANES = 0xffffffffu;

struct Partial {
  float total;
  float largest;
};

// What changes neither answer.
__device__ Partial nothing() { return {0.0f, -INFINITY}; }

__device__ Partial both(Partial a, Partial b) { return {a.total + b.total, fmaxf(a.largest, b.largest)}; }

template <typename T>
__device__ Partial with(Partial seen, T value) {
  const float number = static_cast<float>(value);
  return both(seen, {number, number});
}

// All lanes get the warp's result.
__device__ Partial over_warp(Partial mine) {
  for (int step = 16; step > 0; step /= 2) {
    const Partial other = {__shfl_xor_sync(ALL_LANES, mine.total, step), __shfl_xor_sync(ALL_LANES, mine.largest, step)};
    mine = both(mine, other);
  }
  return mine;
}

// The threads of the first warp get the block's result.
__device__ Partial over_block(Partial mine) {
  __shared__ Partial of_warps[THREADS / 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  mine = over_warp(mine);
  if (lane == 0) of_warps[warp] = mine;
  __syncthreads();
  return warp > 0 ? mine : over_warp(lane < THREADS / 32 ? of_warps[lane] : nothing());
}

__device__ Partial partials[MOST_BLOCKS];

template <typename T>
__global__ void __launch_bounds__(THREADS) reduce_parts(const T* x, int64_t n, int64_t head) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const uint4* packs_of_x = reinterpret_cast<const uint4*>(x + head);
  const int64_t packs = (n - head) / WIDTH, tail = head + packs * WIDTH;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * (THREADS * PACKS);
  Partial seen[PACKS];
#pragma unroll
  for (int k = 0; k < PACKS; ++k) seen[k] = nothing();
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (THREADS * PACKS); first < packs; first += stride) {
    uint4 loaded[PACKS];
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
      const int64_t pack = first + k * THREADS + threadIdx.x;
      if (pack < packs) loaded[k] = packs_of_x[pack];
    }
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
      if (first + k * THREADS + threadIdx.x >= packs) continue;
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) seen[k] = with(seen[k], reinterpret_cast<const T*>(&loaded[k])[i]);
    }
  }
  // Before the first pack and behind the last lie a few elements that fill none.
  if (blockIdx.x == 0 && threadIdx.x < head) seen[0] = with(seen[0], x[threadIdx.x]);
  if (blockIdx.x == 0 && tail + threadIdx.x < n) seen[0] = with(seen[0], x[tail + threadIdx.x]);
#pragma unroll
  for (int k = 1; k < PACKS; ++k) seen[0] = both(seen[0], seen[k]);
  const Partial of_block = over_block(seen[0]);
  if (threadIdx.x == 0) partials[blockIdx.x] = of_block;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) fold_parts(int blocks, float* total, T* largest) {
  Partial seen = nothing();
  for (int block = threadIdx.x; block < blocks; block += THREADS) seen = both(seen, partials[block]);
  seen = over_block(seen);
  if (threadIdx.x == 0) {
    *total = seen.total;
    *largest = static_cast<T>(seen.largest);
  }
}

// How many elements stand before the first address that is a multiple of a pack; at most all of them.
template <typename T>
int64_t elements_before_packs(const T* x, int64_t n) {
  const int64_t past = reinterpret_cast<uintptr_t>(x) % PACK_BYTES;
  const int64_t head = (PACK_BYTES - past) % PACK_BYTES / sizeof(T);
  return head < n ? head : n;
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t per_block = static_cast<int64_t>(THREADS) * PACKS * PACK_BYTES / sizeof(T);
  int64_t blocks = (n + per_block - 1) / per_block;
  for (const int64_t most : {multiprocessors * BLOCKS_PER_MULTIPROCESSOR, MOST_BLOCKS}) blocks = blocks < most ? blocks : most;
  reduce_parts<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(x, n, elements_before_packs(x, n));
  fold_parts<<<1, THREADS, 0, stream>>>(static_cast<int>(blocks), total, largest);
}
