// Bias, GELU and dropout, third milestone: a thread has the eight elements of one counter.
//
// The generator runs an eighth as often. Loads and stores are still of single elements, and neighbours in a warp are eight
// elements apart, so each access touches all sectors of the warp's piece of memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// Philox-4x32 with ten rounds: four words of random bits for a counter.
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
                                         float p, float scale, uint64_t seed) {
  const int64_t counter = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (counter * 8 >= size) return;
  const uint4 four = philox(static_cast<uint32_t>(counter), seed);
  const uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int64_t element = counter * 8 + i;
    if (element >= size) return;
    const float v = static_cast<float>(x[element]) + static_cast<float>(bias[element % cols]);
    const float gelu = 0.5f * v * (1.0f + erff(v * 0.70710678f));
    const bool keep = static_cast<float>(i % 2 == 0 ? words[i / 2] & 0xffffu : words[i / 2] >> 16) >= p * 65536.0f;
    out[element] = static_cast<T>(keep ? gelu * scale : 0.0f);
    mask[element] = keep;
  }
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const int64_t size = rows * cols, counters = (size + 7) / 8;
  const float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
  bias_gelu_dropout_kernel<<<static_cast<unsigned>((counters + 255) / 256), 256, 0, stream>>>(
      x, bias, out, mask, size, cols, p, scale, static_cast<uint64_t>(seed));
}
