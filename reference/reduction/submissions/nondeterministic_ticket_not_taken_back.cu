// Wrong: right in the first call; in the second no block gets the last ticket.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

struct Partial {
  float total;
  float largest;
};

__device__ Partial both(Partial a, Partial b) { return {a.total + b.total, fmaxf(a.largest, b.largest)}; }

// Registers are exchanged directly; all lanes get the warp's result.
__device__ Partial over_warp(Partial mine) {
  for (int step = 16; step > 0; step /= 2) {
    mine = both(mine, {__shfl_xor_sync(~0u, mine.total, step), __shfl_xor_sync(~0u, mine.largest, step)});
  }
  return mine;
}

// The first warp gets the block's result.
__device__ Partial over_block(Partial mine) {
  __shared__ Partial of_warps[THREADS / 32];
  mine = over_warp(mine);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  const bool has = threadIdx.x < THREADS / 32;
  return threadIdx.x >= 32 ? mine : over_warp(has ? of_warps[threadIdx.x] : Partial{0.0f, -INFINITY});
}

constexpr int BLOCKS = 256;
__device__ Partial parts[BLOCKS];
__device__ unsigned arrived = 0;

template <typename T>
__global__ void reduce_all(const T* x, int64_t n, float* total, T* largest) {
  __shared__ bool last;
  Partial seen = {0.0f, -INFINITY};
  const int64_t stride = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n; i += stride) {
    const float value = static_cast<float>(x[i]);
    seen = both(seen, {value, value});
  }
  seen = over_block(seen);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = seen;
    __threadfence();
    last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  seen = {0.0f, -INFINITY};
  for (int block = threadIdx.x; block < gridDim.x; block += THREADS) {
    const volatile Partial* part = parts + block;
    seen = both(seen, {part->total, part->largest});
  }
  seen = over_block(seen);
  if (threadIdx.x == 0) {
    *total = seen.total;
    *largest = static_cast<T>(seen.largest);
  }
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  reduce_all<<<static_cast<unsigned>(n / 4096 + 1 < BLOCKS ? n / 4096 + 1 : BLOCKS), THREADS, 0, stream>>>(x, n, total, largest);
}
