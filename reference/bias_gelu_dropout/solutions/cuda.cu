// Bias, GELU and dropout in one kernel, the staff kernel:
//
//     v = x[i, j] + bias[j],    out[i, j] = keep * v * Phi(v) / (1 - p),    mask[i, j] = keep
//
// At the bandwidth of the memory there is time for about 36 instructions per element of 16 bits, and the obvious kernel needs
// 40. Four things bring it down to 27:
//
// One Philox counter gives four words of 32 bits, which are eight numbers of 16 bits. A thread works on packs of eight
// neighbours, so the generator runs once for eight elements.
//
// v * Phi(v) = max(v, 0) - t * Phi(-t) with t = |v|, and Phi(-t) = 2^q(t) with a polynomial q: one exponential and no division.
// Its coefficients are those that keep Phi(-t) off by less than half an eps of float32 (eight of them), or off by less than
// a tenth of half an eps of the output in 16 bits, as far as float32 can tell it from zero (six).
//
// A thread takes the same columns of several rows: the biases are loaded and widened once, and no column is found by division.
//
// Halves of a word are compared where they are: the upper one with the lower one behind it, which cannot change the outcome.
//
// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, for Philox. The polynomials
// are our own (fit.py in the folder above).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PACK = 8;  // Elements of one counter.
constexpr int ROWS = 4;  // Of a thread.

template <typename T>
struct alignas(16) Pack {
  T values[PACK];
};
struct alignas(8) MaskPack {
  uint32_t words[2];
};
struct Words {
  uint32_t of[4];
};

// What belongs to a call: all that is the same for every element, made by the host.
struct Dropout {
  uint32_t low[10], high[10];  // The keys of Philox's ten rounds.
  uint32_t bound;              // Kept is what is not less, in the upper half of a word.
  float half_scale;            // 1 / (1 - p) / 2.
  bool any;                    // Whether anything is kept.
};

// --- the generator ----------------------------------------------------------------------------------------------------

// Philox-4x32 with ten rounds.
__device__ Words philox(uint32_t counter, const Dropout& dropout) {
  uint32_t c0 = counter, c1 = 0, c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c0, b = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ dropout.low[round];
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ dropout.high[round];
    c3 = static_cast<uint32_t>(a);
  }
  return {{c0, c1, c2, c3}};
}

// --- the arithmetic ---------------------------------------------------------------------------------------------------

// log2 of 2 Phi(-t) for t >= 0; for large t very negative.
template <typename T>
__device__ float exponent(float t) {
  if constexpr (sizeof(T) == 2) {
    float q = -0.00037460957537405193f;
    q = q * t + 0.006332108285278082f;
    q = q * t - 0.04986259713768959f;
    q = q * t - 0.46202099323272705f;
    q = q * t - 1.150106430053711f;
    return q * t - 0.000056112541642505676f;
  } else {
    float q = -2.772211348354318e-06f;
    q = q * t + 3.862272569676861e-05f;
    q = q * t - 0.0001825572398956865f;
    q = q * t - 0.00014584590098820627f;
    q = q * t + 0.007075438275933266f;
    q = q * t - 0.0525050014257431f;
    q = q * t - 0.45920491218566895f;
    q = q * t - 1.1511057615280151f;
    return q * t;
  }
}

// 2 v Phi(v): v + t is twice the larger of v and 0, without a comparison.
template <typename T>
__device__ float twice_gelu(float v) {
  const float t = fabsf(v);
  return (v + t) - t * exp2f(exponent<T>(t));
}

// A pack as floats. The upper half of a word is a bfloat16 in its place already.
__device__ void widen(const Pack<float>& from, float (&to)[PACK]) {
#pragma unroll
  for (int i = 0; i < PACK; ++i) to[i] = from.values[i];
}

__device__ void widen(const Pack<__half>& from, float (&to)[PACK]) {
#pragma unroll
  for (int i = 0; i < PACK; ++i) to[i] = __half2float(from.values[i]);
}

__device__ void widen(const Pack<__nv_bfloat16>& from, float (&to)[PACK]) {
  const uint32_t* words = reinterpret_cast<const uint32_t*>(from.values);
#pragma unroll
  for (int i = 0; i < PACK; i += 2) {
    to[i] = __uint_as_float(words[i / 2] << 16);
    to[i + 1] = __uint_as_float(words[i / 2] & 0xffff0000u);
  }
}

// The numbers of a pack, and what they make of its elements.
template <typename T>
__device__ void work(const Pack<T>& x, const float (&bias)[PACK], uint32_t counter, const Dropout& dropout, Pack<T>& out,
                     MaskPack& mask) {
  const Words words = philox(counter, dropout);
  float wide[PACK];
  widen(x, wide);
  mask = {{0, 0}};
#pragma unroll
  for (int i = 0; i < PACK; ++i) {
    const uint32_t number = i % 2 == 0 ? words.of[i / 2] << 16 : words.of[i / 2];
    const bool keep = dropout.any && number >= dropout.bound;
    out.values[i] = static_cast<T>(twice_gelu<T>(wide[i] + bias[i]) * (keep ? dropout.half_scale : 0.0f));
    if (keep) mask.words[i / 4] |= 1u << (i % 4 * 8);
  }
}

// --- kernels ----------------------------------------------------------------------------------------------------------

// Rows of whole packs that begin where 16 bytes may be loaded at once: a thread has one pack of columns in ROWS rows.
template <typename T>
__global__ void __launch_bounds__(THREADS)
    whole_packs(const Pack<T>* x, const Pack<T>* bias, Pack<T>* out, MaskPack* mask, uint32_t rows, uint32_t packs,
                const __grid_constant__ Dropout dropout) {
  const uint32_t pack = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t first = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
  if (pack >= packs) return;
  const Pack<T> packed = bias[pack];
  float biases[PACK];
  widen(packed, biases);
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    if (first + i >= rows) return;
    const uint32_t counter = (first + i) * packs + pack;
    const Pack<T> xs = x[counter];
    Pack<T> outs;
    MaskPack masks;
    work(xs, biases, counter, dropout, outs, masks);
    out[counter] = outs;
    mask[counter] = masks;
  }
}

// Rows that are no whole packs, or addresses that allow no wide access: the same packs, element by element.
template <typename T>
__global__ void __launch_bounds__(THREADS)
    any_packs(const T* x, const T* bias, T* out, uint8_t* mask, int64_t size, int64_t cols,
              const __grid_constant__ Dropout dropout) {
  const uint32_t counter = blockIdx.x * THREADS + threadIdx.x;
  const int64_t first = static_cast<int64_t>(counter) * PACK;
  Pack<T> xs, outs;
  float biases[PACK];
  MaskPack masks;
  for (int i = 0; i < PACK; ++i) {
    xs.values[i] = first + i < size ? x[first + i] : static_cast<T>(0.0f);
    biases[i] = first + i < size ? static_cast<float>(bias[(first + i) % cols]) : 0.0f;
  }
  work(xs, biases, counter, dropout, outs, masks);
  for (int i = 0; i < PACK && first + i < size; ++i) {
    out[first + i] = outs.values[i];
    mask[first + i] = masks.words[i / 4] >> (i % 4 * 8) & 1;
  }
}

// --- launcher ---------------------------------------------------------------------------------------------------------

Dropout dropout_of(float p, uint64_t seed) {
  Dropout made;
  for (uint32_t round = 0; round < 10; ++round) {
    made.low[round] = static_cast<uint32_t>(seed) + round * 0x9E3779B9u;
    made.high[round] = static_cast<uint32_t>(seed >> 32) + round * 0xBB67AE85u;
  }
  // A whole number is not less than p * 65536 if it is not less than the next whole number above.
  const uint32_t least = static_cast<uint32_t>(ceilf(p * 65536.0f));
  made.any = least < 65536;
  made.bound = least << 16;
  // At p = 1 nothing may be multiplied by infinity.
  made.half_scale = made.any ? 0.5f / (1.0f - p) : 0.0f;
  return made;
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  const Dropout dropout = dropout_of(p, static_cast<uint64_t>(seed));
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(bias) | reinterpret_cast<uintptr_t>(out);
  if (cols % PACK == 0 && begins % 16 == 0 && reinterpret_cast<uintptr_t>(mask) % PACK == 0) {
    const unsigned packs = static_cast<unsigned>(cols / PACK), width = packs < THREADS ? 32 : THREADS;
    const unsigned rows_of_block = THREADS / width * ROWS;
    const dim3 blocks((packs + width - 1) / width, static_cast<unsigned>((rows + rows_of_block - 1) / rows_of_block));
    whole_packs<<<blocks, dim3(width, THREADS / width), 0, stream>>>(
        reinterpret_cast<const Pack<T>*>(x), reinterpret_cast<const Pack<T>*>(bias), reinterpret_cast<Pack<T>*>(out),
        reinterpret_cast<MaskPack*>(mask), static_cast<uint32_t>(rows), packs, dropout);
  } else {
    const int64_t size = rows * cols, packs = (size + PACK - 1) / PACK;
    const unsigned blocks = static_cast<unsigned>((packs + THREADS - 1) / THREADS);
    any_packs<<<blocks, THREADS, 0, stream>>>(x, bias, out, mask, size, cols, dropout);
  }
}
