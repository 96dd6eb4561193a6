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
#include "cuda_emulator/integers.h"
#include "cuda_emulator/rounding.h"

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
inline float cuda_emulator_tanh(float x) { return std::tanh(x); }
inline void cuda_emulator_sincos(float x, float* sine, float* cosine) { *sine = std::sin(x), *cosine = std::cos(x); }
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
#define __tanhf cuda_emulator_tanh
#define __sincosf cuda_emulator_sincos
#define __saturatef cuda_emulator_saturate

inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }

// Functions that C++ does not have. In double, those for floats too, and so more exact than a GPU's.
namespace cuda_emulator {
constexpr double pi = 3.14159265358979323846, sqrt_half = 0.70710678118654752440;

// sin and cos of pi x, without a large argument's loss.
inline double sine_of_pi(double x) {
  const double within = std::remainder(x, 2.0);
  return within == std::nearbyint(within) ? std::copysign(0.0, x) : std::sin(pi * within);
}
inline double cosine_of_pi(double x) {
  const double within = std::fabs(std::remainder(x, 2.0));
  return within == 0.5 ? 0.0 : std::cos(pi * within);
}
// exp(x^2) erfc(x): by a continued fraction where erfc has become too small.
inline double scaled_erfc(double x) {
  if (x < 10.0) return std::exp(x * x) * std::erfc(x);
  double tail = x;
  for (int i = 60; i > 0; --i) tail = x + 0.5 * i / tail;
  return 1.0 / (tail * std::sqrt(pi));
}
// Where erfc is `y`, by Newton's method on its logarithm; from a first guess that is right to a few hundredths.
inline double inverse_erfc(double y) {
  if (!(y > 0.0 && y < 2.0)) return y == 0.0 ? HUGE_VAL : y == 2.0 ? -HUGE_VAL : NAN;
  if (y > 1.0) return -inverse_erfc(2.0 - y);
  const double t = std::sqrt(-2.0 * std::log(0.5 * y));
  double x = sqrt_half * (t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t));
  for (int i = 0; i < 4; ++i) {
    const double scaled = scaled_erfc(x);
    x += (std::log(scaled) - x * x - std::log(y)) * scaled * std::sqrt(pi) / 2;
  }
  return x;
}
inline double inverse_erf(double y) {
  if (!(y > -1.0 && y < 1.0)) return y == 1.0 ? HUGE_VAL : y == -1.0 ? -HUGE_VAL : NAN;
  if (std::fabs(y) > 0.5) return y > 0 ? inverse_erfc(1.0 - y) : -inverse_erfc(1.0 + y);
  double x = y * std::sqrt(pi) / 2;
  for (int i = 0; i < 6; ++i) x -= (std::erf(x) - y) * std::exp(x * x) * std::sqrt(pi) / 2;
  return x;
}
inline double length(int count, const double* values) {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) sum = std::hypot(sum, values[i]);
  return sum;
}
inline double length(int count, const float* values) {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) sum = std::hypot(sum, static_cast<double>(values[i]));
  return sum;
}
}  // namespace cuda_emulator

#define CUDA_EMULATOR_FUNCTION(name, expression)                                                  \
  inline double name(double x) { return expression; }                                             \
  inline float name##f(float value) {                                                             \
    const double x = value;                                                                       \
    return static_cast<float>(expression);                                                        \
  }
CUDA_EMULATOR_FUNCTION(rcbrt, 1.0 / std::cbrt(x))
CUDA_EMULATOR_FUNCTION(sinpi, ::cuda_emulator::sine_of_pi(x))
CUDA_EMULATOR_FUNCTION(cospi, ::cuda_emulator::cosine_of_pi(x))
CUDA_EMULATOR_FUNCTION(erfinv, ::cuda_emulator::inverse_erf(x))
CUDA_EMULATOR_FUNCTION(erfcinv, ::cuda_emulator::inverse_erfc(x))
CUDA_EMULATOR_FUNCTION(erfcx, ::cuda_emulator::scaled_erfc(x))
CUDA_EMULATOR_FUNCTION(normcdf, 0.5 * std::erfc(-x * ::cuda_emulator::sqrt_half))
CUDA_EMULATOR_FUNCTION(normcdfinv, -::cuda_emulator::inverse_erfc(2.0 * x) / ::cuda_emulator::sqrt_half)
CUDA_EMULATOR_FUNCTION(cyl_bessel_i0, std::cyl_bessel_i(0.0, std::fabs(x)))
CUDA_EMULATOR_FUNCTION(cyl_bessel_i1, std::copysign(std::cyl_bessel_i(1.0, std::fabs(x)), x))
#undef CUDA_EMULATOR_FUNCTION

#define CUDA_EMULATOR_LENGTH(type, suffix)                                                        \
  inline type rhypot##suffix(type x, type y) { return static_cast<type>(1.0 / std::hypot(double(x), double(y))); } \
  inline type norm##suffix(int count, const type* values) { return static_cast<type>(::cuda_emulator::length(count, values)); } \
  inline type rnorm##suffix(int count, const type* values) { return static_cast<type>(1.0 / ::cuda_emulator::length(count, values)); } \
  inline type norm3d##suffix(type x, type y, type z) {                                            \
    const type values[] = {x, y, z};                                                              \
    return norm##suffix(3, values);                                                               \
  }                                                                                               \
  inline type rnorm3d##suffix(type x, type y, type z) {                                           \
    const type values[] = {x, y, z};                                                              \
    return rnorm##suffix(3, values);                                                              \
  }                                                                                               \
  inline type norm4d##suffix(type x, type y, type z, type w) {                                    \
    const type values[] = {x, y, z, w};                                                           \
    return norm##suffix(4, values);                                                               \
  }                                                                                               \
  inline type rnorm4d##suffix(type x, type y, type z, type w) {                                   \
    const type values[] = {x, y, z, w};                                                           \
    return rnorm##suffix(4, values);                                                              \
  }                                                                                               \
  inline void sincospi##suffix(type x, type* sine, type* cosine) { *sine = sinpi##suffix(x), *cosine = cospi##suffix(x); }
CUDA_EMULATOR_LENGTH(double, )
CUDA_EMULATOR_LENGTH(float, f)
#undef CUDA_EMULATOR_LENGTH
inline float fdividef(float x, float y) { return x / y; }
inline double fdivide(double x, double y) { return x / y; }

inline int __float_as_int(float x) { return cuda_emulator::same_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return cuda_emulator::same_bits<unsigned>(x); }
inline float __int_as_float(int x) { return cuda_emulator::same_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return cuda_emulator::same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return cuda_emulator::same_bits<long long>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __longlong_as_double(long long x) { return cuda_emulator::same_bits<double>(x); }

inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

// An address says by itself where it lies: these are for inline PTX.
inline size_t __cvta_generic_to_shared(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_global(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_local(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_constant(const void* address) { return reinterpret_cast<size_t>(address); }
inline void* __cvta_shared_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __cvta_local_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __cvta_constant_to_generic(size_t address) { return reinterpret_cast<void*>(address); }

// Loads and stores with a hint for the caches, of which there are none here. What goes past a multiprocessor's own cache is
// how blocks tell each other.
namespace cuda_emulator {
template <class T>
CUDA_EMULATOR_INLINE T loaded_from_l2(const T* address) {
  races::atomic_begins();
  const T value = *address;
  races::atomic_ends();
  return value;
}
template <class T>
CUDA_EMULATOR_INLINE void stored_to_l2(T* address, T value) {
  races::atomic_begins();
  *address = value;
  races::atomic_ends();
}
}  // namespace cuda_emulator
template <class T> CUDA_EMULATOR_INLINE T __ldg(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldca(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldcg(const T* address) { return ::cuda_emulator::loaded_from_l2(address); }
template <class T> CUDA_EMULATOR_INLINE T __ldcs(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldlu(const T* address) { return *address; }
template <class T> CUDA_EMULATOR_INLINE T __ldcv(const T* address) { return ::cuda_emulator::loaded_from_l2(address); }
template <class T> CUDA_EMULATOR_INLINE void __stwb(T* address, T value) { *address = value; }
template <class T> CUDA_EMULATOR_INLINE void __stcg(T* address, T value) { ::cuda_emulator::stored_to_l2(address, value); }
template <class T> CUDA_EMULATOR_INLINE void __stcs(T* address, T value) { *address = value; }
template <class T> CUDA_EMULATOR_INLINE void __stwt(T* address, T value) { ::cuda_emulator::stored_to_l2(address, value); }
