// Bias, GELU and dropout: out = keep * gelu(x + bias) / (1 - p), and the mask of what is kept.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// Philox-4x32 with ten rounds: four words of 32 random bits, which are eight numbers of 16 bits, for a counter under a key.
__device__ uint4 philox(uint32_t counter, uint64_t seed) {
  uint4 c = make_uint4(counter, 0, 0, 0);
  uint32_t low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c.x, b = static_cast<uint64_t>(0xCD9E8D57u) * c.z;
    c = make_uint4(static_cast<uint32_t>(b >> 32) ^ c.y ^ low, static_cast<uint32_t>(b),
                   static_cast<uint32_t>(a >> 32) ^ c.w ^ high, static_cast<uint32_t>(a));
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return c;
}

template <typename T>
__global__ void bias_gelu_dropout_kernel(const T* x, const T* bias, T* out, uint8_t* mask, int64_t size, int64_t cols,
                                         float p, uint64_t seed) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= size) return;
  const float v = static_cast<float>(x[element]) + static_cast<float>(bias[element % cols]);
  const float gelu = 0.5f * v * (1.0f + erff(v * 0.70710678f));

  // Your part: these are the numbers of this element's pack. Take its own, and keep what is not less than p * 65536.
  const uint4 words = philox(static_cast<uint32_t>(element / 8), seed);
  const bool keep = static_cast<float>(words.x & 0xffffu) >= 0.0f;

  // Your part: what is dropped is zero, and what is kept is divided by 1 - p.
  out[element] = static_cast<T>(gelu);
  mask[element] = keep;
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's tensors.
template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const int64_t size = rows * cols;
  bias_gelu_dropout_kernel<<<static_cast<unsigned>((size + 255) / 256), 256, 0, stream>>>(
      x, bias, out, mask, size, cols, p, static_cast<uint64_t>(seed));
}
