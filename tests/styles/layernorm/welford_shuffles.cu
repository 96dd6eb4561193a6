// Welford's running mean and squares in every thread, merged by warp shuffles and then over the block's warps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int kThreads = 256, kWarps = kThreads / 32;

struct Moments {
  float count, mean, squares;
};

__device__ __forceinline__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float apart = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

__device__ Moments merge_warp(Moments mine) {
  for (int step = 16; step > 0; step /= 2) {
    const Moments other = {__shfl_down_sync(0xffffffffu, mine.count, step),
                           __shfl_down_sync(0xffffffffu, mine.mean, step),
                           __shfl_down_sync(0xffffffffu, mine.squares, step)};
    mine = merge(mine, other);
  }
  return mine;
}

template <typename T>
__global__ void norm_row(const T* x, const T* weight, const T* bias, T* out, int64_t cols, int64_t x_stride,
                         int64_t out_stride, float eps, bool center) {
  __shared__ Moments of_warps[kWarps];
  __shared__ float shift, scale;
  const T* in = x + blockIdx.x * x_stride;
  T* to = out + blockIdx.x * out_stride;

  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    const float value = static_cast<float>(in[j]);
    mine.count += 1.0f;
    const float delta = value - mine.mean;
    mine.mean += delta / mine.count;
    mine.squares += delta * (value - mine.mean);
  }
  mine = merge_warp(mine);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    Moments all = {0.0f, 0.0f, 0.0f};
    if (threadIdx.x < kWarps) all = of_warps[threadIdx.x];
    all = merge_warp(all);
    if (threadIdx.x == 0) {
      const float variance = all.squares / all.count + (center ? 0.0f : all.mean * all.mean);
      shift = center ? all.mean : 0.0f;
      scale = 1.0f / sqrtf(variance + eps);
    }
  }
  __syncthreads();
  for (int64_t j = threadIdx.x; j < cols; j += kThreads) {
    const float normal = (static_cast<float>(in[j]) - shift) * scale;
    to[j] = static_cast<T>(fmaf(normal, static_cast<float>(weight[j]), static_cast<float>(bias[j])));
  }
}

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  norm_row<T><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, weight, bias, out, cols, x_row_stride,
                                                                   out_row_stride, eps, center != 0);
}
