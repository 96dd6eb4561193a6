// A block of 64 threads for each head: a thread for each pair, and the sum of squares through shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 64;

template <typename T>
__global__ void norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t heads,
                                 int64_t q_token_stride, float eps) {
  __shared__ float squares[THREADS];
  const int64_t row = blockIdx.x, token = row / heads, head = row % heads;
  const int i = threadIdx.x;
  const T* x = q + token * q_token_stride + head * 128;
  float low = static_cast<float>(x[i]), high = static_cast<float>(x[i + 64]);
  squares[i] = low * low + high * high;
  for (int step = THREADS / 2; step > 0; step /= 2) {
    __syncthreads();
    if (i < step) squares[i] += squares[i + step];
  }
  __syncthreads();
  const float scale = rsqrtf(squares[0] / 128 + eps);
  low *= scale * static_cast<float>(weight[i]);
  high *= scale * static_cast<float>(weight[i + 64]);
  const float c = cos[token * 64 + i], s = sin[token * 64 + i];
  out[row * 128 + i] = static_cast<T>(low * c - high * s);
  out[row * 128 + i + 64] = static_cast<T>(high * c + low * s);
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  norm_rope_kernel<<<static_cast<unsigned>(tokens * heads), THREADS, 0, stream>>>(q, weight, cos, sin, out, heads,
                                                                                  q_token_stride, eps);
}
