// Library author's style: a namespace, a struct of parameters, tables in constant memory, a zeroed buffer of scales.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define DIVUP(a, b) (((a) + (b)-1) / (b))

namespace nvfp4 {

constexpr int kGroup = 16;
constexpr int kThreads = 128;

__constant__ float kMidpoints[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

struct Params {
  int64_t rows, groups, ld_in, ld_out;
  float g;
};

__device__ __forceinline__ uint8_t encode_e4m3(float v) {
  if (v >= 448.0f) return 0x7e;
  int exponent;
  frexpf(v, &exponent);
  exponent = v > 0.0f ? max(exponent - 1, -6) : -6;
  const float eighths = rintf(ldexpf(v, 3 - exponent));  // 8 to 16 of them; fewer when subnormal
  return static_cast<uint8_t>((exponent + 6) * 8 + static_cast<int>(eighths));
}

__device__ __forceinline__ float decode_e4m3(uint8_t c) {
  const int e = c >> 3, m = c & 7;
  return e == 0 ? ldexpf(static_cast<float>(m), -9) : ldexpf(static_cast<float>(8 + m), e - 10);
}

__device__ __forceinline__ uint8_t encode_e2m1(float v) {
  const float a = fabsf(v);
  uint8_t code = 0;
#pragma unroll
  for (int i = 0; i < 7; ++i) {
    // A midpoint itself goes to the neighbour with the even code.
    const bool above = (i & 1) ? a >= kMidpoints[i] : a > kMidpoints[i];
    code += above ? 1 : 0;
  }
  return code | (signbit(v) ? 0x8 : 0x0);
}

template <typename scalar_t>
__global__ void quantize_kernel(const scalar_t* __restrict__ in, uint8_t* __restrict__ out, uint8_t* __restrict__ sf,
                                Params p) {
  const int64_t row = blockIdx.y;
  const int64_t k_tiles = DIVUP(p.groups, 4);
  for (int64_t group = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; group < p.groups;
       group += static_cast<int64_t>(gridDim.x) * kThreads) {
    float v[kGroup];
    float amax = 0.f;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      v[i] = static_cast<float>(in[row * p.ld_in + group * kGroup + i]);
      amax = fmaxf(amax, fabsf(v[i]));
    }
    const uint8_t code = encode_e4m3((amax * p.g) / 6.0f);
    const float inv = code ? p.g / decode_e4m3(code) : 0.0f;
#pragma unroll
    for (int i = 0; i < kGroup; i += 2) {
      const float lo = v[i] * inv, hi = v[i + 1] * inv;
      out[row * p.ld_out + group * 8 + i / 2] = static_cast<uint8_t>(encode_e2m1(lo) | (encode_e2m1(hi) << 4));
    }
    const int64_t tile = (row / 128) * k_tiles + group / 4;
    sf[tile * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + group % 4] = code;
  }
}

}  // namespace nvfp4

template <typename T>
void nvfp4_quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                    int64_t packed_row_stride, float global_scale, cudaStream_t stream) {
  using namespace nvfp4;
  cudaMemsetAsync(scales, 0, DIVUP(rows, 128) * DIVUP(blocks, 4) * 512, stream);
  // One launch for every 65535 rows: what the second dimension of a grid allows, rounded down to whole tiles.
  constexpr int64_t kMost = 65408;
  for (int64_t first = 0; first < rows; first += kMost) {
    const int64_t count = rows - first < kMost ? rows - first : kMost;
    const Params p{count, blocks, x_row_stride, packed_row_stride, global_scale};
    const dim3 grid(static_cast<unsigned>(DIVUP(blocks, kThreads)), static_cast<unsigned>(count));
    quantize_kernel<T><<<grid, kThreads, 0, stream>>>(x + first * x_row_stride, packed + first * packed_row_stride,
                                                      scales + first / 128 * DIVUP(blocks, 4) * 512, p);
  }
}
