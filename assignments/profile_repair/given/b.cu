// Kernel B of "Profile and repair": right, and slow. Each thread takes a head of its own, so that no thread waits for another.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

template <typename T>
__global__ void norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out,
                                 int64_t tokens, int64_t heads, int64_t q_token_stride, float eps) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (row >= tokens * heads) return;
  const int64_t token = row / heads, head = row % heads;
  const T* x = q + token * q_token_stride + head * 128;
  T* y = out + row * 128;
  float square = 0.0f;
  for (int i = 0; i < 128; ++i) {
    const float value = static_cast<float>(x[i]);
    square += value * value;
  }
  const float scale = rsqrtf(square / 128 + eps);
  for (int i = 0; i < 64; ++i) {
    const float low = static_cast<float>(x[i]) * scale * static_cast<float>(weight[i]);
    const float high = static_cast<float>(x[i + 64]) * scale * static_cast<float>(weight[i + 64]);
    const float c = cos[token * 64 + i], s = sin[token * 64 + i];
    y[i] = static_cast<T>(low * c - high * s);
    y[i + 64] = static_cast<T>(high * c + low * s);
  }
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  const int64_t blocks = (tokens * heads + THREADS - 1) / THREADS;
  norm_rope_kernel<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(q, weight, cos, sin, out, tokens, heads,
                                                                          q_token_stride, eps);
}
