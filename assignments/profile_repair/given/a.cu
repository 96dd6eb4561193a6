// Kernel A of "Profile and repair": right, and slow. A warp takes one head after the other, in steps of the whole grid.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int BLOCKS = 132;  // One for each multiprocessor of the GPU.
constexpr int THREADS = 32;

template <typename T>
__global__ void norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out,
                                 int64_t tokens, int64_t heads, int64_t q_token_stride, float eps) {
  const int lane = threadIdx.x;
  for (int64_t row = blockIdx.x; row < tokens * heads; row += gridDim.x) {
    const int64_t token = row / heads, head = row % heads;
    const T* x = q + token * q_token_stride + head * 128;
    float square = 0.0f;
    for (int i = lane; i < 128; i += THREADS) {
      const float value = static_cast<float>(x[i]);
      square += value * value;
    }
    for (int step = 16; step > 0; step /= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
    const float scale = rsqrtf(square / 128 + eps);
    for (int i = lane; i < 64; i += THREADS) {
      const float low = static_cast<float>(x[i]) * scale * static_cast<float>(weight[i]);
      const float high = static_cast<float>(x[i + 64]) * scale * static_cast<float>(weight[i + 64]);
      const float c = cos[token * 64 + i], s = sin[token * 64 + i];
      out[row * 128 + i] = static_cast<T>(low * c - high * s);
      out[row * 128 + i + 64] = static_cast<T>(high * c + low * s);
    }
  }
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  norm_rope_kernel<<<BLOCKS, THREADS, 0, stream>>>(q, weight, cos, sin, out, tokens, heads, q_token_stride, eps);
}
