// A small Philox class, eight elements for each thread, and the complementary error function, which keeps the tails'
// digits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

class Philox4x32 {
 public:
  __device__ Philox4x32(uint64_t seed)
      : key_lo_(static_cast<uint32_t>(seed)), key_hi_(static_cast<uint32_t>(seed >> 32)) {}

  __device__ uint4 operator()(uint32_t counter) const {
    uint32_t c[4] = {counter, 0u, 0u, 0u};
    uint32_t lo = key_lo_, hi = key_hi_;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint32_t hi0 = __umulhi(kMul0, c[0]), lo0 = kMul0 * c[0];
      const uint32_t hi1 = __umulhi(kMul1, c[2]), lo1 = kMul1 * c[2];
      c[0] = hi1 ^ c[1] ^ lo;
      c[1] = lo1;
      c[2] = hi0 ^ c[3] ^ hi;
      c[3] = lo0;
      lo += kWeyl0;
      hi += kWeyl1;
    }
    return make_uint4(c[0], c[1], c[2], c[3]);
  }

 private:
  static constexpr uint32_t kMul0 = 0xD2511F53u, kMul1 = 0xCD9E8D57u;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  uint32_t key_lo_, key_hi_;
};

template <typename T>
struct alignas(16) Eight {
  T value[8];
};

__device__ __forceinline__ float gelu_exact(float v) { return 0.5f * v * erfcf(-0.70710678118654752f * v); }

// EVEN: rows are whole packs and everything is aligned.
template <typename T, bool EVEN>
__global__ void __launch_bounds__(256)
    fused_kernel(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ out, uint8_t* __restrict__ mask,
                 int64_t size, int64_t cols, float threshold, float scale, uint64_t seed) {
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t first = pack * 8;
  if (first >= size) return;

  const uint4 words = Philox4x32(seed)(static_cast<uint32_t>(pack));
  const uint32_t word[4] = {words.x, words.y, words.z, words.w};
  int64_t column = first % cols;

  if (EVEN) {
    const Eight<T> in = *reinterpret_cast<const Eight<T>*>(x + first);
    const Eight<T> add = *reinterpret_cast<const Eight<T>*>(bias + column);
    Eight<T> res;
    union {
      uint2 bits;
      uint8_t byte[8];
    } kept;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float number = static_cast<float>((word[k / 2] >> (16 * (k % 2))) & 0xffffu);
      const bool keep = number >= threshold;
      const float v = static_cast<float>(in.value[k]) + static_cast<float>(add.value[k]);
      res.value[k] = static_cast<T>(keep ? gelu_exact(v) * scale : 0.0f);
      kept.byte[k] = keep ? 1 : 0;
    }
    *reinterpret_cast<Eight<T>*>(out + first) = res;
    *reinterpret_cast<uint2*>(mask + first) = kept.bits;
  } else {
    for (int k = 0; k < 8 && first + k < size; ++k) {
      const float number = static_cast<float>((word[k / 2] >> (16 * (k % 2))) & 0xffffu);
      const bool keep = number >= threshold;
      const float v = static_cast<float>(x[first + k]) + static_cast<float>(bias[column]);
      out[first + k] = static_cast<T>(keep ? gelu_exact(v) * scale : 0.0f);
      mask[first + k] = keep ? 1 : 0;
      if (++column == cols) column = 0;
    }
  }
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const int64_t size = rows * cols, packs = (size + 7) / 8;
  const uintptr_t wide = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(bias) |
                         reinterpret_cast<uintptr_t>(out) | (reinterpret_cast<uintptr_t>(mask) * 2);
  const float threshold = p * 65536.0f;
  const float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
  const unsigned blocks = static_cast<unsigned>((packs + 255) / 256);
  if (wide % 16 == 0 && cols % 8 == 0) {
    fused_kernel<T, true>
        <<<blocks, 256, 0, stream>>>(x, bias, out, mask, size, cols, threshold, scale, static_cast<uint64_t>(seed));
  } else {
    fused_kernel<T, false>
        <<<blocks, 256, 0, stream>>>(x, bias, out, mask, size, cols, threshold, scale, static_cast<uint64_t>(seed));
  }
}
