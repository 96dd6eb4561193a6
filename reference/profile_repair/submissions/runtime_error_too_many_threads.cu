// Fails: no GPU has blocks of 2048 threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARPS = 64;

template <typename T>
__global__ void norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out,
                                 int64_t tokens, int64_t heads, int64_t q_token_stride, float eps) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  if (row >= tokens * heads) return;
  const int64_t token = row / heads, head = row % heads;
  const T* x = q + token * q_token_stride + head * 128;
  float value[4], square = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    value[k] = static_cast<float>(x[lane + 32 * k]);
    square += value[k] * value[k];
  }
  for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
  const float scale = rsqrtf(square / 128 + eps);
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int i = lane + 32 * k;
    const float low = value[k] * scale * static_cast<float>(weight[i]);
    const float high = value[k + 2] * scale * static_cast<float>(weight[i + 64]);
    const float c = cos[token * 64 + i], s = sin[token * 64 + i];
    out[row * 128 + i] = static_cast<T>(low * c - high * s);
    out[row * 128 + i + 64] = static_cast<T>(high * c + low * s);
  }
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  const int64_t blocks = (tokens * heads + WARPS - 1) / WARPS;
  norm_rope_kernel<<<static_cast<unsigned>(blocks), 32 * WARPS, 0, stream>>>(q, weight, cos, sin, out, tokens, heads,
                                                                             q_token_stride, eps);
}
