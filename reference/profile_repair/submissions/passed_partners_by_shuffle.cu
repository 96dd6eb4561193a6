// Right: a warp for each head, four neighbouring elements for each lane, whose partners are those of the lane 16 further on.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t heads,
                                 int64_t q_token_stride, float eps) {
  const int lane = threadIdx.x, first = 4 * lane;
  const int64_t token = blockIdx.x;
  for (int64_t head = threadIdx.y; head < heads; head += blockDim.y) {
    const T* x = q + token * q_token_stride + head * 128 + first;
    float own[4], square = 0.0f;
    for (int k = 0; k < 4; ++k) {
      own[k] = static_cast<float>(x[k]);
      square = fmaf(own[k], own[k], square);
    }
    for (int step = 1; step < 32; step *= 2) square += __shfl_xor_sync(0xffffffffu, square, step);
    const float scale = 1.0f / sqrtf(square * (1.0f / 128) + eps);
    for (int k = 0; k < 4; ++k) {
      const float mine = own[k] * scale * static_cast<float>(weight[first + k]);
      const float other = __shfl_xor_sync(0xffffffffu, mine, 16);
      const int64_t at = token * 64 + (first + k) % 64;
      const float turned = mine * cos[at] + (lane < 16 ? -other : other) * sin[at];
      out[(token * heads + head) * 128 + first + k] = static_cast<T>(turned);
    }
  }
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  norm_rope_kernel<<<static_cast<unsigned>(tokens), dim3(32, 4), 0, stream>>>(q, weight, cos, sin, out, heads, q_token_stride, eps);
}
