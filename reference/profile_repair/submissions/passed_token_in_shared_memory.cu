// Right: a block for each token and eight heads, whose values wait in shared memory until the sums of squares are known.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int HEADS = 8, THREADS = 256;

template <typename T>
__global__ void norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t heads,
                                 int64_t q_token_stride, float eps) {
  __shared__ float values[HEADS][128], squares[HEADS], c[64], s[64];
  const int64_t token = blockIdx.x, first = static_cast<int64_t>(blockIdx.y) * HEADS;
  const int count = static_cast<int>(heads - first < HEADS ? heads - first : HEADS);
  for (int i = threadIdx.x; i < 64; i += THREADS) {
    c[i] = cos[token * 64 + i];
    s[i] = sin[token * 64 + i];
  }
  for (int i = threadIdx.x; i < count * 128; i += THREADS) {
    values[i / 128][i % 128] = static_cast<float>(q[token * q_token_stride + first * 128 + i]);
  }
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp < count) {
    float square = 0.0f;
    for (int i = lane; i < 128; i += 32) square += values[warp][i] * values[warp][i];
    for (int step = 16; step > 0; step /= 2) square += __shfl_down_sync(0xffffffffu, square, step);
    if (lane == 0) squares[warp] = rsqrtf(square / 128 + eps);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count * 64; i += THREADS) {
    const int head = i / 64, pair = i % 64;
    const float low = values[head][pair] * squares[head] * static_cast<float>(weight[pair]);
    const float high = values[head][pair + 64] * squares[head] * static_cast<float>(weight[pair + 64]);
    T* to = out + (token * heads + first + head) * 128 + pair;
    to[0] = static_cast<T>(low * c[pair] - high * s[pair]);
    to[64] = static_cast<T>(high * c[pair] + low * s[pair]);
  }
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(tokens), static_cast<unsigned>((heads + HEADS - 1) / HEADS));
  norm_rope_kernel<<<grid, THREADS, 0, stream>>>(q, weight, cos, sin, out, heads, q_token_stride, eps);
}
