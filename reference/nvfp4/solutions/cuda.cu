// NVFP4 in one kernel, the staff kernel: four bits a value, and a scale for every 16 in tiles of 128 rows and 4 blocks.
//
// One thread for each scale, in the order in which the scales of a tile lie: a warp stores 32 of them as one run, and reads
// 128 bytes or more of each of eight rows. The 16 values of a thread stay in registers from the search for the largest to the
// packing. Nothing is converted to a small type by the hardware, which on Hopper has no E2M1: numbers are rounded by adding
// a power of two whose last bit is the step, and read from the bits of the sum. The product is by __fmul_rn, because a
// compiler may fuse any other with what is added to it. Sixteen bits at a time are compared, and signs are moved by bytes:
// with a dozen instructions for a value more, arithmetic takes longer than memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

constexpr int VALUES = 16;   // Of a block with one scale.
constexpr int TILE = 512;    // Scales of a tile.
constexpr int THREADS = 128;
constexpr float WHOLE = 8388608.0f;  // 2^23: from here on float32 holds whole numbers only.
constexpr uint32_t WHOLE_BITS = 0x4b000000u;

// The 16 values of a thread, as words.
template <typename T>
struct Values {
  static constexpr int OF_WORD = sizeof(uint32_t) / sizeof(T);
  static constexpr int WORDS = VALUES / OF_WORD;
  alignas(16) uint32_t words[WORDS];

  __device__ float operator[](int i) const {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
      // A bfloat16 is the upper half of a float; by its conversion it is first cut out of the word.
      return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
    } else {
      return static_cast<float>(reinterpret_cast<const T*>(words)[i]);
    }
  }

  // The largest magnitude. Bits of numbers without a sign are in the order of the numbers.
  __device__ float largest() const {
    uint32_t most = 0;
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < WORDS; ++i) most = __vmaxu2(most, words[i] & 0x7fff7fffu);
      const uint16_t bits = static_cast<uint16_t>(max(most & 0xffffu, most >> 16));
      return static_cast<float>(reinterpret_cast<const T&>(bits));
    } else {
#pragma unroll
      for (int i = 0; i < WORDS; ++i) most = max(most, words[i] & 0x7fffffffu);
      return __uint_as_float(most);
    }
  }

  // The signs of eight values from `first` on, each in the highest bit of its four.
  __device__ uint32_t signs(int first) const {
    const uint32_t* w = words + first / OF_WORD;
    uint32_t even, odd;  // A byte of each value with its sign.
    if constexpr (sizeof(T) == 2) {
      const uint32_t low = __byte_perm(w[0], w[1], 0x7351), high = __byte_perm(w[2], w[3], 0x7351);
      even = __byte_perm(low, high, 0x5410);
      odd = __byte_perm(low, high, 0x7632);
    } else {
      even = __byte_perm(__byte_perm(w[0], w[2], 0x0073), __byte_perm(w[4], w[6], 0x0073), 0x5410);
      odd = __byte_perm(__byte_perm(w[1], w[3], 0x0073), __byte_perm(w[5], w[7], 0x0073), 0x5410);
    }
    return (even >> 4 & 0x08080808u) | (odd & 0x80808080u);
  }
};

// The code of a number that is not negative: to nearest, ties to even, at most 448.
__device__ uint32_t e4m3_code(float u) {
  u = fminf(u, 448.0f);
  // Below 2^-6 the step is 2^-9, the last bit of 2^14.
  if (u < 0.015625f) return __float_as_uint(u + 16384.0f) - 0x46800000u;
  const uint32_t bits = __float_as_uint(u);
  return ((bits + 0x7ffffu + ((bits >> 20) & 1u)) >> 20) - (120u << 3);
}

__device__ float e4m3_value(uint32_t code) {
  return code < 8 ? static_cast<float>(code) * 0.001953125f : __uint_as_float((code + (120u << 3)) << 20);
}

// The code of a number that is not negative: to nearest, ties to even, at most 7. It is 2a up to 2, a + 2 up to 4 and
// a / 2 + 4 up to 6: always the least of the three, rounded. WHOLE_BITS are added to it.
__device__ uint32_t e2m1_bits(float a) {
  const uint32_t up_to_2 = __float_as_uint(fmaf(2.0f, a, WHOLE));
  const uint32_t up_to_4 = __float_as_uint(a + (WHOLE + 2.0f));
  const uint32_t up_to_6 = __float_as_uint(fmaf(0.5f, a, WHOLE + 4.0f));
  return min(min(up_to_2, up_to_4), min(up_to_6, WHOLE_BITS + 7u));
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS, sizeof(T) == 2 ? 16 : 8)
    quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
             int64_t packed_row_stride, float global_scale) {
  // A tile is worked on by several blocks of threads: while some wait for memory, others compute.
  const unsigned tile = blockIdx.x / (TILE / THREADS);
  const unsigned place = blockIdx.x % (TILE / THREADS) * THREADS + threadIdx.x;
  const int64_t row = blockIdx.y * 128 + place / 4 % 4 * 32 + place / 16;
  const int64_t block = tile * 4 + place % 4;
  scales += static_cast<int64_t>(blockIdx.y) * gridDim.x * THREADS + tile * TILE + place;
  if (row >= rows || block >= blocks) {
    *scales = 0;
    return;
  }

  Values<T> mine;
  const T* from = x + row * x_row_stride + block * VALUES;
  if (WIDE) {
#pragma unroll
    for (int i = 0; i < Values<T>::WORDS / 4; ++i) {
      reinterpret_cast<uint4*>(mine.words)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < VALUES; ++i) reinterpret_cast<T*>(mine.words)[i] = from[i];
  }

  const uint32_t code = e4m3_code(__fdiv_rn(__fmul_rn(mine.largest(), global_scale), 6.0f));
  // A scale of 0 has no reciprocal, and its values are zeros.
  const float factor = code == 0 ? 0.0f : __fdiv_rn(global_scale, e4m3_value(code));
  *scales = static_cast<uint8_t>(code);

  uint32_t words[2];
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    // Every code comes with WHOLE_BITS: those of the first two values stay in the word, and are taken off in the end.
    uint32_t codes = 0;
#pragma unroll
    for (int i = 7; i >= 0; --i) codes = codes * 16u + e2m1_bits(fabsf(__fmul_rn(mine[word * 8 + i], factor)));
    words[word] = (codes - 17u * WHOLE_BITS) | mine.signs(word * 8);
  }
  uint8_t* to = packed + row * packed_row_stride + block * (VALUES / 2);
  if (WIDE) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
  } else {
#pragma unroll
    for (int i = 0; i < VALUES / 2; ++i) to[i] = static_cast<uint8_t>(words[i / 4] >> (i % 4 * 8));
  }
}

template <typename T>
void nvfp4_quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                    int64_t packed_row_stride, float global_scale, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((blocks + 3) / 4 * (TILE / THREADS)), static_cast<unsigned>((rows + 127) / 128));
  const bool wide = reinterpret_cast<uintptr_t>(x) % 16 == 0 && x_row_stride * sizeof(T) % 16 == 0 &&
                    reinterpret_cast<uintptr_t>(packed) % 8 == 0 && packed_row_stride % 8 == 0;
  if (wide) {
    quantise<T, true><<<grid, THREADS, 0, stream>>>(x, packed, scales, rows, blocks, x_row_stride, packed_row_stride,
                                                    global_scale);
  } else {
    quantise<T, false><<<grid, THREADS, 0, stream>>>(x, packed, scales, rows, blocks, x_row_stride, packed_row_stride,
                                                     global_scale);
  }
}
