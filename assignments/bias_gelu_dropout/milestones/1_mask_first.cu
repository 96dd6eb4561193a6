// Bias, GELU and dropout, first milestone: one kernel draws the mask, another uses it.
//
// The mask goes to memory and comes back, and the generator makes four words for each element, of which half of one is used:
// seven neighbours compute the same words again.
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

// Whether an element is kept: its number is a half of one of the four words of its pack of eight.
__device__ bool is_kept(int64_t element, float p, uint64_t seed) {
  const uint4 words = philox(static_cast<uint32_t>(element / 8), seed);
  const int place = static_cast<int>(element % 8);
  const uint32_t word = place < 4 ? (place < 2 ? words.x : words.y) : (place < 6 ? words.z : words.w);
  return static_cast<float>(place % 2 == 0 ? word & 0xffffu : word >> 16) >= p * 65536.0f;
}

__global__ void draw_mask(uint8_t* mask, int64_t size, float p, uint64_t seed) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element < size) mask[element] = is_kept(element, p, seed);
}

template <typename T>
__global__ void bias_gelu(const T* x, const T* bias, T* out, const uint8_t* mask, int64_t size, int64_t cols, float scale) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= size) return;
  const float v = static_cast<float>(x[element]) + static_cast<float>(bias[element % cols]);
  const float gelu = 0.5f * v * (1.0f + erff(v * 0.70710678f));
  out[element] = static_cast<T>(mask[element] ? gelu * scale : 0.0f);
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const int64_t size = rows * cols;
  const unsigned blocks = static_cast<unsigned>((size + 255) / 256);
  draw_mask<<<blocks, 256, 0, stream>>>(mask, size, p, static_cast<uint64_t>(seed));
  bias_gelu<<<blocks, 256, 0, stream>>>(x, bias, out, mask, size, cols, p < 1.0f ? 1.0f / (1.0f - p) : 0.0f);
}
