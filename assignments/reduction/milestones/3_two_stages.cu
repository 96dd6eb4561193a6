// Reduction, third milestone: a fixed number of blocks, each thread with a running sum and maximum.
//
// The tree is done once per thread, no longer once per element. A thread asks for one element at a time, four bytes or two,
// and waits for it: that is what remains to be improved.
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

constexpr int BLOCKS = 1024;
__device__ Partial parts[BLOCKS];

template <typename T>
__global__ void reduce_parts(const T* x, int64_t n) {
  Partial seen = {0.0f, -INFINITY};
  const int64_t stride = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n; i += stride) {
    const float value = static_cast<float>(x[i]);
    seen = both(seen, {value, value});
  }
  seen = over_block(seen);
  if (threadIdx.x == 0) parts[blockIdx.x] = seen;
}

template <typename T>
__global__ void fold_parts(int blocks, float* total, T* largest) {
  Partial seen = {0.0f, -INFINITY};
  for (int block = threadIdx.x; block < blocks; block += THREADS) seen = both(seen, parts[block]);
  seen = over_block(seen);
  if (threadIdx.x == 0) {
    *total = seen.total;
    *largest = static_cast<T>(seen.largest);
  }
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  const int64_t wanted = (n + THREADS - 1) / THREADS;
  const int blocks = static_cast<int>(wanted < BLOCKS ? wanted : BLOCKS);
  reduce_parts<<<blocks, THREADS, 0, stream>>>(x, n);
  fold_parts<<<1, THREADS, 0, stream>>>(blocks, total, largest);
}
