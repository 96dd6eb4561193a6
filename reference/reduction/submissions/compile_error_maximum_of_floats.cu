// There is no function of this name.
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

// The order of floats as integers: both signs, for atomicMax.
__device__ int ordered(float value) {
  const int bits = __float_as_int(value);
  return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
__device__ float unordered(int bits) { return __int_as_float(bits >= 0 ? bits : bits ^ 0x7fffffff); }

__device__ int largest_bits;

__global__ void begin(float* total) {
  *total = 0.0f;
  largest_bits = ordered(-INFINITY);
}

template <typename T>
__global__ void add_parts(const T* x, int64_t n, float* total) {
  Partial seen = {0.0f, -INFINITY};
  const int64_t stride = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n; i += stride) {
    const float value = static_cast<float>(x[i]);
    seen = both(seen, {value, value});
  }
  seen = over_block(seen);
  if (threadIdx.x == 0) {
    atomicAdd(total, seen.total);
    atomicMaxFloat(&largest_bits, seen.largest);
  }
}

template <typename T>
__global__ void end(T* largest) {
  *largest = static_cast<T>(unordered(largest_bits));
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  begin<<<1, 1, 0, stream>>>(total);
  add_parts<<<static_cast<unsigned>(n / 4096 + 1 < 512 ? n / 4096 + 1 : 512), THREADS, 0, stream>>>(x, n, total);
  end<<<1, 1, 0, stream>>>(largest);
}
