// The way a serving engine's fused kernel does it: a warp per (token, head), grid-stride over pairs, templated loads, no shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace fused_norm_rope {

constexpr int kHeadDim = 128;
constexpr int kElemsPerLane = kHeadDim / 32;
constexpr int kBlock = 256;

__device__ __forceinline__ float warp_reduce_sum(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor_sync(0xffffffff, v, mask, 32);
  return v;
}

template <typename scalar_t, bool kVector>
__device__ __forceinline__ void load_lane(const scalar_t* src, float (&dst)[kElemsPerLane]) {
  struct alignas(sizeof(scalar_t) * kElemsPerLane) Vec {
    scalar_t v[kElemsPerLane];
  };
  if constexpr (kVector) {
    const Vec vec = *reinterpret_cast<const Vec*>(src);
#pragma unroll
    for (int i = 0; i < kElemsPerLane; ++i) dst[i] = static_cast<float>(vec.v[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kElemsPerLane; ++i) dst[i] = static_cast<float>(src[i]);
  }
}

template <typename scalar_t, bool kVector>
__global__ void kernel(const scalar_t* __restrict__ q, const scalar_t* __restrict__ w, const float* __restrict__ cos_cache,
                       const float* __restrict__ sin_cache, scalar_t* __restrict__ out, int64_t num_pairs, int64_t num_heads,
                       int64_t q_stride, float eps) {
  const int lane = threadIdx.x & 31;
  const int64_t num_warps = static_cast<int64_t>(gridDim.x) * (blockDim.x >> 5);
  float weight[kElemsPerLane];
  load_lane<scalar_t, kVector>(w + lane * kElemsPerLane, weight);
  for (int64_t pair = static_cast<int64_t>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5); pair < num_pairs; pair += num_warps) {
    const int64_t token = pair / num_heads, head = pair - token * num_heads;
    float e[kElemsPerLane], ss = 0.f;
    load_lane<scalar_t, kVector>(q + token * q_stride + head * kHeadDim + lane * kElemsPerLane, e);
#pragma unroll
    for (int i = 0; i < kElemsPerLane; ++i) ss += e[i] * e[i];
    const float rms_rcp = rsqrtf(warp_reduce_sum(ss) / static_cast<float>(kHeadDim) + eps);
#pragma unroll
    for (int i = 0; i < kElemsPerLane; ++i) e[i] *= rms_rcp * weight[i];
#pragma unroll
    for (int i = 0; i < kElemsPerLane; ++i) {
      // Lanes 0 to 15 have the first half of the head.
      float other = __shfl_xor_sync(0xffffffff, e[i], 16);
      if (lane < 16) other = -other;
      const int64_t at = token * (kHeadDim / 2) + (lane * kElemsPerLane + i) % (kHeadDim / 2);
      out[pair * kHeadDim + lane * kElemsPerLane + i] = static_cast<scalar_t>(e[i] * cos_cache[at] + other * sin_cache[at]);
    }
  }
}

}  // namespace fused_norm_rope

template <typename scalar_t>
void norm_rope(const scalar_t* q, const scalar_t* weight, const float* cos, const float* sin, scalar_t* out, int64_t tokens,
               int64_t heads, int64_t q_token_stride, float eps, cudaStream_t stream) {
  using namespace fused_norm_rope;
  const int64_t pairs = tokens * heads, wanted = (pairs + kBlock / 32 - 1) / (kBlock / 32);
  const unsigned blocks = static_cast<unsigned>(wanted < 132 * 16 ? wanted : 132 * 16);
  const uintptr_t where = reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(weight);
  if (where % (kElemsPerLane * sizeof(scalar_t)) == 0 && q_token_stride % kElemsPerLane == 0)
    kernel<scalar_t, true><<<blocks, kBlock, 0, stream>>>(q, weight, cos, sin, out, pairs, heads, q_token_stride, eps);
  else
    kernel<scalar_t, false><<<blocks, kBlock, 0, stream>>>(q, weight, cos, sin, out, pairs, heads, q_token_stride, eps);
}
