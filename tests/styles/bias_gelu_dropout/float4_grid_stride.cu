// Eight elements for a thread and one Philox counter for them, by float4 or uint4 loads, in a grid-stride loop.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

struct Words {
  uint32_t w[4];
};

__device__ Words philox4x32_10(uint32_t counter, uint64_t key) {
  uint32_t c0 = counter, c1 = 0, c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0;
    const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

__device__ __forceinline__ float gelu_exact(float v) { return 0.5f * v * erfcf(-0.707106781f * v); }

template <typename T>
struct alignas(16) Eight {
  T lanes[8];
};

// `wide`: rows are whole packs and all pointers are aligned.
template <typename T>
__global__ void fused(const T* x, const T* bias, T* out, uint8_t* mask, int64_t size, int64_t cols, float threshold,
                      float scale, uint64_t seed, bool wide) {
  constexpr int kLoads = sizeof(Eight<T>) / 16;
  const int64_t packs = (size + 7) / 8;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; pack < packs; pack += step) {
    const Words random = philox4x32_10(static_cast<uint32_t>(pack), seed);
    const int64_t first = pack * 8;
    int64_t col = first % cols;
    Eight<T> in, shift, answer;
    alignas(8) uint8_t kept[8];
    if (wide) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        reinterpret_cast<uint4*>(&in)[i] = reinterpret_cast<const uint4*>(x + first)[i];
        reinterpret_cast<uint4*>(&shift)[i] = reinterpret_cast<const uint4*>(bias + col)[i];
      }
    } else {
      for (int i = 0; i < 8 && first + i < size; ++i) {
        in.lanes[i] = x[first + i];
        shift.lanes[i] = bias[col];
        col = col + 1 == cols ? 0 : col + 1;
      }
    }
    const int count = size - first < 8 ? static_cast<int>(size - first) : 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i >= count) break;
      const uint32_t number = i % 2 == 0 ? random.w[i / 2] & 0xffffu : random.w[i / 2] >> 16;
      const bool keep = static_cast<float>(number) >= threshold;
      const float v = static_cast<float>(in.lanes[i]) + static_cast<float>(shift.lanes[i]);
      answer.lanes[i] = static_cast<T>(keep ? gelu_exact(v) * scale : 0.0f);
      kept[i] = keep ? 1 : 0;
    }
    if (wide) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        reinterpret_cast<uint4*>(out + first)[i] = reinterpret_cast<const uint4*>(&answer)[i];
      }
      *reinterpret_cast<uint2*>(mask + first) = *reinterpret_cast<const uint2*>(kept);
    } else {
      for (int i = 0; i < count; ++i) {
        out[first + i] = answer.lanes[i];
        mask[first + i] = kept[i];
      }
    }
  }
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const int64_t size = rows * cols, packs = (size + 7) / 8;
  const uintptr_t floats =
      reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(bias) | reinterpret_cast<uintptr_t>(out);
  const bool wide = cols % 8 == 0 && floats % 16 == 0 && reinterpret_cast<uintptr_t>(mask) % 8 == 0;
  // p * 65536 is exact in float, and so are the numbers it is compared with.
  const float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
  int64_t blocks = (packs + 255) / 256;
  if (blocks > 132 * 32) blocks = 132 * 32;
  fused<T><<<static_cast<unsigned>(blocks), 256, 0, stream>>>(x, bias, out, mask, size, cols, p * 65536.0f, scale,
                                                             static_cast<uint64_t>(seed), wide);
}
