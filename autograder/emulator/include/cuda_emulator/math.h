// Intrinsics on numbers. The fast approximations of a GPU (__expf and the like) are exact to the last bit or so here: what
// passes here with them may still be outside of the tolerance on a GPU.
#pragma once

// As nvcc includes them: C++'s own math.h and stdlib.h make `abs`, `isnan`, `sqrt` and the others of every type known
// without `std::`. After <cmath> alone only C's are, and `abs` of a float is an int.
#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_emulator/block.h"

using std::max;
using std::min;

// Of floats they are fmax and fmin: of a number and a NaN, the number. std::max takes whichever comes first.
constexpr float max(float a, float b) { return a > b || b != b ? a : b; }
constexpr float min(float a, float b) { return a < b || b != b ? a : b; }
constexpr double max(double a, double b) { return a > b || b != b ? a : b; }
constexpr double min(double a, double b) { return a < b || b != b ? a : b; }

#define CUDA_EMULATOR_MIXED(A, B, Result)                                                                    \
  inline Result min(A a, B b) { return min(static_cast<Result>(a), static_cast<Result>(b)); }                \
  inline Result min(B a, A b) { return min(b, a); }                                                          \
  inline Result max(A a, B b) { return max(static_cast<Result>(a), static_cast<Result>(b)); }                \
  inline Result max(B a, A b) { return max(b, a); }
CUDA_EMULATOR_MIXED(int, unsigned, unsigned)
CUDA_EMULATOR_MIXED(int, long, long)
CUDA_EMULATOR_MIXED(int, long long, long long)
CUDA_EMULATOR_MIXED(unsigned, unsigned long, unsigned long)
CUDA_EMULATOR_MIXED(unsigned, unsigned long long, unsigned long long)
CUDA_EMULATOR_MIXED(int, unsigned long, unsigned long)
CUDA_EMULATOR_MIXED(float, double, double)
CUDA_EMULATOR_MIXED(int, float, float)
#undef CUDA_EMULATOR_MIXED

namespace cuda_emulator {
template <class To, class From>
To same_bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
}  // namespace cuda_emulator

inline float cuda_emulator_exp(float x) { return std::exp(x); }
inline float cuda_emulator_exp10(float x) { return std::pow(10.0f, x); }
inline float cuda_emulator_log(float x) { return std::log(x); }
inline float cuda_emulator_log2(float x) { return std::log2(x); }
inline float cuda_emulator_log10(float x) { return std::log10(x); }
inline float cuda_emulator_sin(float x) { return std::sin(x); }
inline float cuda_emulator_cos(float x) { return std::cos(x); }
inline float cuda_emulator_tan(float x) { return std::tan(x); }
inline float cuda_emulator_pow(float x, float y) { return std::pow(x, y); }
inline float cuda_emulator_saturate(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
// glibc has functions of some of these names of its own.
#define __expf cuda_emulator_exp
#define __exp10f cuda_emulator_exp10
#define __logf cuda_emulator_log
#define __log2f cuda_emulator_log2
#define __log10f cuda_emulator_log10
#define __sinf cuda_emulator_sin
#define __cosf cuda_emulator_cos
#define __tanf cuda_emulator_tan
#define __powf cuda_emulator_pow
#define __saturatef cuda_emulator_saturate

inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678118654752f); }

inline int __float_as_int(float x) { return cuda_emulator::same_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return cuda_emulator::same_bits<unsigned>(x); }
inline float __int_as_float(int x) { return cuda_emulator::same_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return cuda_emulator::same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return cuda_emulator::same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return cuda_emulator::same_bits<double>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
inline int __mul24(int x, int y) { return x * y; }
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(static_cast<std::uint64_t>(x) * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 15;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (choice & 7)) & 255);
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// Loads and stores with a hint for the caches, of which there are none here.
template <class T> CUDA_EMULATOR_INLINE T __ldg(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldca(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldcg(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldcs(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldlu(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldcv(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE void __stwb(T* address, T value) { *address = value; }
template <class T> CUDA_EMULATOR_INLINE void __stcg(T* address, T value) { *address = value; }
template <class T> CUDA_EMULATOR_INLINE void __stcs(T* address, T value) { *address = value; }
template <class T> CUDA_EMULATOR_INLINE void __stwt(T* address, T value) { *address = value; }
