// Kernel D of "Profile and repair": right, and slow. Eight lanes share a head and load 16 bytes each. A thread holds its part of
// sixteen heads, so that many loads are on their way, and the launch bounds ask for every warp that a multiprocessor can hold.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256, BLOCKS_OF_AN_SM = 8;
constexpr int LANES = 8, WIDTH = 8, HEADS = 16;

template <typename T, bool WIDE>
__device__ void load(const T* from, float* to) {
  if constexpr (WIDE) {
    alignas(16) T pack[WIDTH];
    *reinterpret_cast<uint4*>(pack) = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = static_cast<float>(pack[i]);
  } else {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = static_cast<float>(from[i]);
  }
}

template <typename T, bool WIDE>
__device__ void store(T* to, const float* from) {
  if constexpr (WIDE) {
    alignas(16) T pack[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) pack[i] = static_cast<T>(from[i]);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(pack);
  } else {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = static_cast<T>(from[i]);
  }
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS_OF_AN_SM)
    norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens,
                     int64_t heads, int64_t chunks, int64_t q_token_stride, float eps) {
  const int lane = threadIdx.x % LANES, column = lane * WIDTH;
  const int64_t group = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) / LANES;
  const bool inside = group < tokens * chunks;
  const int64_t token = inside ? group / chunks : 0, first = inside ? group % chunks * HEADS : heads;
  float low[HEADS][WIDTH], high[HEADS][WIDTH], scale[HEADS];
#pragma unroll
  for (int head = 0; head < HEADS; ++head) {
    if (first + head < heads) {
      const T* from = q + token * q_token_stride + (first + head) * 128 + column;
      load<T, WIDE>(from, low[head]);
      load<T, WIDE>(from + 64, high[head]);
    }
  }
#pragma unroll
  for (int head = 0; head < HEADS; ++head) {
    float square = 0.0f;
    if (first + head < heads) {
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) square += low[head][i] * low[head][i] + high[head][i] * high[head][i];
    }
    for (int step = LANES / 2; step > 0; step /= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
    scale[head] = rsqrtf(square / 128 + eps);
  }
#pragma unroll
  for (int head = 0; head < HEADS; ++head) {
    if (first + head < heads) {
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) {
        const float a = low[head][i] * scale[head] * static_cast<float>(weight[column + i]);
        const float b = high[head][i] * scale[head] * static_cast<float>(weight[column + i + 64]);
        const float c = cos[token * 64 + column + i], s = sin[token * 64 + column + i];
        low[head][i] = a * c - b * s;
        high[head][i] = b * c + a * s;
      }
      T* to = out + (token * heads + first + head) * 128 + column;
      store<T, WIDE>(to, low[head]);
      store<T, WIDE>(to + 64, high[head]);
    }
  }
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  const int64_t chunks = (heads + HEADS - 1) / HEADS, threads = tokens * chunks * LANES;
  const unsigned blocks = static_cast<unsigned>((threads + THREADS - 1) / THREADS);
  const auto begins = reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(out);
  if (sizeof(T) == 2 && begins % 16 == 0 && q_token_stride % WIDTH == 0) {
    norm_rope_kernel<T, sizeof(T) == 2><<<blocks, THREADS, 0, stream>>>(q, weight, cos, sin, out, tokens, heads, chunks,
                                                                        q_token_stride, eps);
  } else {
    norm_rope_kernel<T, false><<<blocks, THREADS, 0, stream>>>(q, weight, cos, sin, out, tokens, heads, chunks,
                                                               q_token_stride, eps);
  }
}
