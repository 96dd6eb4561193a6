// A block for each row: packs of 16 bytes where rows are aligned, reductions by warp shuffles, and an online maximum.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

constexpr int kThreads = 256;
constexpr unsigned kFull = 0xffffffffu;

struct Running {
  float largest, total;
};

__device__ __forceinline__ Running join(Running a, Running b) {
  const float m = fmaxf(a.largest, b.largest);
  if (m == -INFINITY) return {m, 0.0f};
  return {m, a.total * __expf(a.largest - m) + b.total * __expf(b.largest - m)};
}

__device__ __forceinline__ void take(Running& state, float x) {
  if (x > state.largest) {
    state.total = state.total * expf(state.largest - x) + 1.0f;
    state.largest = x;
  } else if (x > -INFINITY) {
    state.total += expf(x - state.largest);
  }
}

__device__ Running of_block(Running mine) {
  __shared__ float largest[kThreads / 32], total[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    mine = join(mine, {__shfl_xor_sync(kFull, mine.largest, step), __shfl_xor_sync(kFull, mine.total, step)});
  }
  if (threadIdx.x % 32 == 0) {
    largest[threadIdx.x / 32] = mine.largest;
    total[threadIdx.x / 32] = mine.total;
  }
  __syncthreads();
  Running all = {largest[0], total[0]};
  for (int w = 1; w < kThreads / 32; ++w) all = join(all, {largest[w], total[w]});
  return all;
}

template <typename T>
__global__ void softmax_row(const T* x, T* out, int64_t cols, int64_t x_stride, int64_t out_stride, bool wide) {
  constexpr int kPack = 16 / sizeof(T);
  const T* in = x + blockIdx.x * x_stride;
  T* to = out + blockIdx.x * out_stride;
  const int64_t packs = wide ? cols / kPack : 0;
  Running state = {-INFINITY, 0.0f};
  for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
    const uint4 bits = reinterpret_cast<const uint4*>(in)[p];
    const T* lanes = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int i = 0; i < kPack; ++i) take(state, static_cast<float>(lanes[i]));
  }
  for (int64_t j = packs * kPack + threadIdx.x; j < cols; j += kThreads) take(state, static_cast<float>(in[j]));
  const Running row = of_block(state);
  const float scale = 1.0f / row.total;
  for (int64_t p = threadIdx.x; p < packs; p += kThreads) {
    const uint4 bits = reinterpret_cast<const uint4*>(in)[p];
    const T* lanes = reinterpret_cast<const T*>(&bits);
    uint4 answer;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      reinterpret_cast<T*>(&answer)[i] = static_cast<T>(expf(static_cast<float>(lanes[i]) - row.largest) * scale);
    }
    reinterpret_cast<uint4*>(to)[p] = answer;
  }
  for (int64_t j = packs * kPack + threadIdx.x; j < cols; j += kThreads) {
    to[j] = static_cast<T>(expf(static_cast<float>(in[j]) - row.largest) * scale);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out) |
                         static_cast<uintptr_t>(x_row_stride * sizeof(T)) |
                         static_cast<uintptr_t>(out_row_stride * sizeof(T));
  softmax_row<T><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride,
                                                                      bits % 16 == 0);
}
