// Bias, GELU and dropout in one kernel, the staff kernel:
//
//     v = x[i, j] + bias[j],    out[i, j] = keep * v * Phi(v) / (1 - p),    mask[i, j] = keep
//
// A thread works on a pack of eight neighbours, because one Philox counter gives four words of 32 bits, which are eight numbers
// of 16 bits: the generator runs once for eight elements. Phi(v) = erfc(-v/sqrt 2)/2 is taken as
//
//     erfc(z) ~ (a1 t + a2 t^2 + a3 t^3 + a4 t^4 + a5 t^5) exp(-z^2),    t = 1/(1 + 0.3275911 z),    z >= 0
//
// whose error is at most 1.5e-7, one exponential and one division; for positive v it is 1 minus that of -v.
//
// Sources: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011, for Philox; Abramowitz and
// Stegun, "Handbook of Mathematical Functions", 7.1.26, for the error function.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PACK = 8;  // Elements of one counter.

template <typename T>
struct alignas(16) Pack {
  T values[PACK];
};
struct alignas(8) MaskPack {
  uint8_t values[PACK];
};
struct Words {
  uint32_t of[4];
};

// The keys of Philox's ten rounds. They are the same for all threads, so the host makes them.
struct Keys {
  uint32_t low[10], high[10];
};

Keys keys_of(uint64_t seed) {
  Keys keys;
  for (uint32_t round = 0; round < 10; ++round) {
    keys.low[round] = static_cast<uint32_t>(seed) + round * 0x9E3779B9u;
    keys.high[round] = static_cast<uint32_t>(seed >> 32) + round * 0xBB67AE85u;
  }
  return keys;
}

// Philox-4x32 with ten rounds.
__device__ Words philox(uint32_t counter, const Keys& keys) {
  uint32_t c0 = counter, c1 = 0, c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c0, b = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ keys.low[round];
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ keys.high[round];
    c3 = static_cast<uint32_t>(a);
  }
  return {{c0, c1, c2, c3}};
}

// v * Phi(v): the logarithm to base 2 of the odds Phi/(1 - Phi) is v times a smooth function of v^2.
__device__ float gelu(float v) {
  const float u = fminf(v * v, 38.0f);
  float odds = 5.067394948099491e-09f;
  odds = odds * u - 3.816365108377795e-07f;
  odds = odds * u + 1.1439893569331616e-05f;
  odds = odds * u - 0.00015958023141138256f;
  odds = odds * u - 9.404860611539334e-05f;
  odds = odds * u + 0.10483512282371521f;
  odds = odds * u + 2.3022093772888184f;
  return __fdividef(v, 1.0f + exp2f(-v * odds));
}

// The numbers of a pack, and what they make of its elements.
template <typename T>
__device__ void work(const Pack<T>& x, const Pack<T>& bias, uint32_t counter, uint32_t threshold, float scale,
                     const Keys& keys, Pack<T>& out, MaskPack& mask) {
  const Words words = philox(counter, keys);
#pragma unroll
  for (int i = 0; i < PACK; ++i) {
    const uint32_t number = i % 2 == 0 ? words.of[i / 2] & 0xffffu : words.of[i / 2] >> 16;
    const bool keep = number >= threshold;
    const float v = static_cast<float>(x.values[i]) + static_cast<float>(bias.values[i]);
    out.values[i] = static_cast<T>(gelu(v) * (keep ? scale : 0.0f));
    mask.values[i] = keep;
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    whole_packs(const T* x, const T* bias, T* out, uint8_t* mask, uint32_t packs, uint32_t packs_of_row,
                uint32_t threshold, float scale, const __grid_constant__ Keys keys) {
  const uint32_t counter = blockIdx.x * THREADS + threadIdx.x;
  if (counter >= packs) return;
  const Pack<T> xs = reinterpret_cast<const Pack<T>*>(x)[counter];
  const Pack<T> biases = reinterpret_cast<const Pack<T>*>(bias)[counter % packs_of_row];
  Pack<T> outs;
  MaskPack masks;
  work(xs, biases, counter, threshold, scale, keys, outs, masks);
  reinterpret_cast<Pack<T>*>(out)[counter] = outs;
  reinterpret_cast<MaskPack*>(mask)[counter] = masks;
}

// Rows that are no whole packs, or addresses that allow no wide access: the same packs, element by element.
template <typename T>
__global__ void __launch_bounds__(THREADS)
    any_packs(const T* x, const T* bias, T* out, uint8_t* mask, int64_t size, int64_t cols, uint32_t threshold, float scale,
              const __grid_constant__ Keys keys) {
  const uint32_t counter = blockIdx.x * THREADS + threadIdx.x;
  const int64_t first = static_cast<int64_t>(counter) * PACK;
  Pack<T> xs, biases, outs;
  MaskPack masks;
  for (int i = 0; i < PACK; ++i) {
    xs.values[i] = first + i < size ? x[first + i] : static_cast<T>(0.0f);
    biases.values[i] = first + i < size ? bias[(first + i) % cols] : static_cast<T>(0.0f);
  }
  work(xs, biases, counter, threshold, scale, keys, outs, masks);
  for (int i = 0; i < PACK && first + i < size; ++i) {
    out[first + i] = outs.values[i];
    mask[first + i] = masks.values[i];
  }
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const int64_t size = rows * cols, packs = (size + PACK - 1) / PACK;
  const unsigned blocks = static_cast<unsigned>((packs + THREADS - 1) / THREADS);
  // At p = 1 nothing is kept, and nothing may be multiplied by infinity.
  const float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
  // A whole number is not less than p * 65536 if it is not less than the next whole number above.
  const uint32_t threshold = static_cast<uint32_t>(ceilf(p * 65536.0f));
  const Keys keys = keys_of(static_cast<uint64_t>(seed));
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(bias) |
                      reinterpret_cast<uintptr_t>(out);
  if (cols % PACK == 0 && begins % 16 == 0 && reinterpret_cast<uintptr_t>(mask) % PACK == 0) {
    whole_packs<<<blocks, THREADS, 0, stream>>>(x, bias, out, mask, static_cast<uint32_t>(packs),
                                                static_cast<uint32_t>(cols / PACK), threshold, scale, keys);
  } else {
    any_packs<<<blocks, THREADS, 0, stream>>>(x, bias, out, mask, size, cols, threshold, scale, keys);
  }
}
