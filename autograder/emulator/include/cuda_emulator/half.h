// __half and __nv_bfloat16: storage of 16 bits, arithmetic as the GPU rounds it.
//
// Sums, products, quotients and roots of two such numbers, computed in float and rounded once more, are rounded correctly:
// float has more than twice the digits plus two. A fused multiply-add goes by way of double and float: in a tie its last
// bit may differ from a GPU's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_emulator/vectors.h"

namespace cuda_emulator {

inline std::uint16_t half_bits(float value) {
  const _Float16 rounded = static_cast<_Float16>(value);
  std::uint16_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}
inline float half_value(std::uint16_t bits) {
  _Float16 value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<float>(value);
}
inline std::uint16_t bfloat_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // Stays a NaN whatever is cut off.
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float bfloat_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

}  // namespace cuda_emulator

#define CUDA_EMULATOR_SMALL_FLOAT(Type, Raw, to_bits, to_float)                                                   \
  struct Raw { unsigned short x; };                                                                               \
  struct alignas(2) Type {                                                                                        \
    std::uint16_t bits;                                                                                           \
    Type() = default;                                                                                             \
    Type(float value) : bits(::cuda_emulator::to_bits(value)) {}                                                  \
    Type(double value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                             \
    Type(int value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                                 \
    Type(unsigned value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                            \
    Type(long value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                                \
    Type(unsigned long value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                       \
    Type(long long value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                           \
    Type(unsigned long long value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                  \
    Type(short value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                               \
    Type(unsigned short value) : bits(::cuda_emulator::to_bits(static_cast<float>(value))) {}                      \
    Type(Raw raw) : bits(raw.x) {}                                                                                \
    operator float() const { return ::cuda_emulator::to_float(bits); }                                            \
    operator Raw() const { return {bits}; }                                                                       \
    Type& operator+=(Type other) { return *this = Type(float(*this) + float(other)); }                            \
    Type& operator-=(Type other) { return *this = Type(float(*this) - float(other)); }                            \
    Type& operator*=(Type other) { return *this = Type(float(*this) * float(other)); }                            \
    Type& operator/=(Type other) { return *this = Type(float(*this) / float(other)); }                            \
    Type& operator++() { return *this += Type(1.0f); }                                                            \
    Type& operator--() { return *this -= Type(1.0f); }                                                            \
  };                                                                                                              \
  inline Type operator+(Type a, Type b) { return Type(float(a) + float(b)); }                                     \
  inline Type operator-(Type a, Type b) { return Type(float(a) - float(b)); }                                     \
  inline Type operator*(Type a, Type b) { return Type(float(a) * float(b)); }                                     \
  inline Type operator/(Type a, Type b) { return Type(float(a) / float(b)); }                                     \
  inline Type operator-(Type a) { return Type(-float(a)); }                                                       \
  inline Type operator+(Type a) { return a; }                                                                     \
  inline bool operator==(Type a, Type b) { return float(a) == float(b); }                                         \
  inline bool operator!=(Type a, Type b) { return float(a) != float(b); }                                         \
  inline bool operator<(Type a, Type b) { return float(a) < float(b); }                                           \
  inline bool operator>(Type a, Type b) { return float(a) > float(b); }                                           \
  inline bool operator<=(Type a, Type b) { return float(a) <= float(b); }                                         \
  inline bool operator>=(Type a, Type b) { return float(a) >= float(b); }                                         \
  inline Type __hadd(Type a, Type b) { return a + b; }                                                            \
  inline Type __hsub(Type a, Type b) { return a - b; }                                                            \
  inline Type __hmul(Type a, Type b) { return a * b; }                                                            \
  inline Type __hdiv(Type a, Type b) { return a / b; }                                                            \
  inline Type __hneg(Type a) { return -a; }                                                                       \
  inline Type __habs(Type a) { return Type(std::fabs(float(a))); }                                                \
  inline Type __hmax(Type a, Type b) { return Type(std::fmax(float(a), float(b))); }                              \
  inline Type __hmin(Type a, Type b) { return Type(std::fmin(float(a), float(b))); }                              \
  inline Type __hfma(Type a, Type b, Type c) {                                                                    \
    return Type(static_cast<float>(double(float(a)) * double(float(b)) + double(float(c))));                      \
  }                                                                                                               \
  CUDA_EMULATOR_SMALL_COMPARE(eq, Type, ==)                                                                       \
  CUDA_EMULATOR_SMALL_COMPARE(ne, Type, !=)                                                                       \
  CUDA_EMULATOR_SMALL_COMPARE(lt, Type, <)                                                                        \
  CUDA_EMULATOR_SMALL_COMPARE(gt, Type, >)                                                                        \
  CUDA_EMULATOR_SMALL_COMPARE(le, Type, <=)                                                                       \
  CUDA_EMULATOR_SMALL_COMPARE(ge, Type, >=)                                                                       \
  inline bool __hisnan(Type a) { return std::isnan(float(a)); }                                                   \
  inline int __hisinf(Type a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }                      \
  inline Type __hadd_rn(Type a, Type b) { return a + b; }                                                         \
  inline Type __hsub_rn(Type a, Type b) { return a - b; }                                                         \
  inline Type __hmul_rn(Type a, Type b) { return a * b; }                                                         \
  inline Type cuda_emulator_sat(Type a) { return float(a) > 0 ? (float(a) < 1 ? a : Type(1.0f)) : Type(0.0f); }   \
  inline Type cuda_emulator_relu(Type a) { return float(a) < 0 ? Type(0.0f) : a; }                                \
  inline Type __hadd_sat(Type a, Type b) { return cuda_emulator_sat(a + b); }                                     \
  inline Type __hsub_sat(Type a, Type b) { return cuda_emulator_sat(a - b); }                                     \
  inline Type __hmul_sat(Type a, Type b) { return cuda_emulator_sat(a * b); }                                     \
  inline Type __hfma_sat(Type a, Type b, Type c) { return cuda_emulator_sat(__hfma(a, b, c)); }                   \
  inline Type __hfma_relu(Type a, Type b, Type c) { return cuda_emulator_relu(__hfma(a, b, c)); }                 \
  inline Type __hmax_nan(Type a, Type b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); }             \
  inline Type __hmin_nan(Type a, Type b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); }             \
  CUDA_EMULATOR_SMALL_FUNCTION(exp, Type, std::exp(x))                                                            \
  CUDA_EMULATOR_SMALL_FUNCTION(exp2, Type, std::exp2(x))                                                          \
  CUDA_EMULATOR_SMALL_FUNCTION(exp10, Type, static_cast<float>(std::pow(10.0, static_cast<double>(x))))           \
  CUDA_EMULATOR_SMALL_FUNCTION(log, Type, std::log(x))                                                            \
  CUDA_EMULATOR_SMALL_FUNCTION(log2, Type, std::log2(x))                                                          \
  CUDA_EMULATOR_SMALL_FUNCTION(log10, Type, std::log10(x))                                                        \
  CUDA_EMULATOR_SMALL_FUNCTION(sin, Type, std::sin(x))                                                            \
  CUDA_EMULATOR_SMALL_FUNCTION(cos, Type, std::cos(x))                                                            \
  CUDA_EMULATOR_SMALL_FUNCTION(tanh, Type, std::tanh(x))                                                          \
  CUDA_EMULATOR_SMALL_FUNCTION(tanh_approx, Type, std::tanh(x))                                                   \
  CUDA_EMULATOR_SMALL_FUNCTION(sqrt, Type, std::sqrt(x))                                                          \
  CUDA_EMULATOR_SMALL_FUNCTION(rsqrt, Type, 1.0f / std::sqrt(x))                                                  \
  CUDA_EMULATOR_SMALL_FUNCTION(rcp, Type, 1.0f / x)                                                               \
  CUDA_EMULATOR_SMALL_FUNCTION(ceil, Type, std::ceil(x))                                                          \
  CUDA_EMULATOR_SMALL_FUNCTION(floor, Type, std::floor(x))                                                        \
  CUDA_EMULATOR_SMALL_FUNCTION(rint, Type, std::nearbyint(x))                                                     \
  CUDA_EMULATOR_SMALL_FUNCTION(trunc, Type, std::trunc(x))

// Where one of them is a NaN, a comparison that ends in u holds.
#define CUDA_EMULATOR_SMALL_COMPARE(name, Type, sign)                                                             \
  inline bool __h##name(Type a, Type b) { return float(a) sign float(b) && !(float(a) != float(a)) && !(float(b) != float(b)); } \
  inline bool __h##name##u(Type a, Type b) { return __h##name(a, b) || float(a) != float(a) || float(b) != float(b); }
#define CUDA_EMULATOR_SMALL_FUNCTION(name, Type, expression)                                                      \
  inline Type h##name(Type value) {                                                                               \
    const float x = float(value);                                                                                 \
    return Type(expression);                                                                                      \
  }

CUDA_EMULATOR_SMALL_FLOAT(__half, __half_raw, half_bits, half_value)
CUDA_EMULATOR_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat16_raw, bfloat_bits, bfloat_value)
#undef CUDA_EMULATOR_SMALL_FLOAT
#undef CUDA_EMULATOR_SMALL_COMPARE
#undef CUDA_EMULATOR_SMALL_FUNCTION

#define CUDA_EMULATOR_SMALL_PAIR(Pair, Type, Raw, Raw1)                                                           \
  struct Raw { unsigned short x, y; };                                                                            \
  struct alignas(4) Pair {                                                                                        \
    Type x, y;                                                                                                    \
    Pair() = default;                                                                                             \
    Pair(Type x_, Type y_) : x(x_), y(y_) {}                                                                      \
    Pair(Raw raw) : x(Raw1{raw.x}), y(Raw1{raw.y}) {}                                                             \
    Pair& operator+=(const Pair& other) { return x += other.x, y += other.y, *this; }                             \
    Pair& operator-=(const Pair& other) { return x -= other.x, y -= other.y, *this; }                             \
    Pair& operator*=(const Pair& other) { return x *= other.x, y *= other.y, *this; }                             \
    Pair& operator/=(const Pair& other) { return x /= other.x, y /= other.y, *this; }                             \
  };                                                                                                              \
  inline Pair operator+(const Pair& a, const Pair& b) { return {a.x + b.x, a.y + b.y}; }                          \
  inline Pair operator-(const Pair& a, const Pair& b) { return {a.x - b.x, a.y - b.y}; }                          \
  inline Pair operator*(const Pair& a, const Pair& b) { return {a.x * b.x, a.y * b.y}; }                          \
  inline Pair operator/(const Pair& a, const Pair& b) { return {a.x / b.x, a.y / b.y}; }                          \
  inline Pair __hadd2(const Pair& a, const Pair& b) { return a + b; }                                             \
  inline Pair __hsub2(const Pair& a, const Pair& b) { return a - b; }                                             \
  inline Pair __hmul2(const Pair& a, const Pair& b) { return a * b; }                                             \
  inline Pair __h2div(const Pair& a, const Pair& b) { return a / b; }                                             \
  inline Pair __hmax2(const Pair& a, const Pair& b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }              \
  inline Pair __hmin2(const Pair& a, const Pair& b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }              \
  inline Pair __hfma2(const Pair& a, const Pair& b, const Pair& c) {                                              \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                                                        \
  }                                                                                                               \
  inline Pair operator-(const Pair& a) { return {-a.x, -a.y}; }                                                   \
  inline bool operator==(const Pair& a, const Pair& b) { return a.x == b.x && a.y == b.y; }                       \
  inline bool operator!=(const Pair& a, const Pair& b) { return a.x != b.x && a.y != b.y; }                       \
  inline Pair __hneg2(const Pair& a) { return -a; }                                                               \
  inline Pair __habs2(const Pair& a) { return {__habs(a.x), __habs(a.y)}; }                                       \
  inline Pair __hisnan2(const Pair& a) { return {Type(int{__hisnan(a.x)}), Type(int{__hisnan(a.y)})}; }           \
  inline Pair __hfma2_sat(const Pair& a, const Pair& b, const Pair& c) {                                          \
    return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)};                                                \
  }                                                                                                               \
  inline Pair __hfma2_relu(const Pair& a, const Pair& b, const Pair& c) {                                         \
    return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};                                              \
  }                                                                                                               \
  /* Of complex numbers: a * b + c. */                                                                            \
  inline Pair __hcmadd(const Pair& a, const Pair& b, const Pair& c) {                                             \
    return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};                   \
  }                                                                                                               \
  CUDA_EMULATOR_PAIR_OF_TWO(__hadd2_rn, __hadd_rn, Pair)                                                          \
  CUDA_EMULATOR_PAIR_OF_TWO(__hsub2_rn, __hsub_rn, Pair)                                                          \
  CUDA_EMULATOR_PAIR_OF_TWO(__hmul2_rn, __hmul_rn, Pair)                                                          \
  CUDA_EMULATOR_PAIR_OF_TWO(__hadd2_sat, __hadd_sat, Pair)                                                        \
  CUDA_EMULATOR_PAIR_OF_TWO(__hsub2_sat, __hsub_sat, Pair)                                                        \
  CUDA_EMULATOR_PAIR_OF_TWO(__hmul2_sat, __hmul_sat, Pair)                                                        \
  CUDA_EMULATOR_PAIR_OF_TWO(__hmax2_nan, __hmax_nan, Pair)                                                        \
  CUDA_EMULATOR_PAIR_OF_TWO(__hmin2_nan, __hmin_nan, Pair)                                                        \
  CUDA_EMULATOR_PAIR_COMPARE(eq, Pair, Type)                                                                      \
  CUDA_EMULATOR_PAIR_COMPARE(ne, Pair, Type)                                                                      \
  CUDA_EMULATOR_PAIR_COMPARE(lt, Pair, Type)                                                                      \
  CUDA_EMULATOR_PAIR_COMPARE(gt, Pair, Type)                                                                      \
  CUDA_EMULATOR_PAIR_COMPARE(le, Pair, Type)                                                                      \
  CUDA_EMULATOR_PAIR_COMPARE(ge, Pair, Type)                                                                      \
  CUDA_EMULATOR_PAIR_OF_ONE(exp, Pair)                                                                            \
  CUDA_EMULATOR_PAIR_OF_ONE(exp2, Pair)                                                                           \
  CUDA_EMULATOR_PAIR_OF_ONE(exp10, Pair)                                                                          \
  CUDA_EMULATOR_PAIR_OF_ONE(log, Pair)                                                                            \
  CUDA_EMULATOR_PAIR_OF_ONE(log2, Pair)                                                                           \
  CUDA_EMULATOR_PAIR_OF_ONE(log10, Pair)                                                                          \
  CUDA_EMULATOR_PAIR_OF_ONE(sin, Pair)                                                                            \
  CUDA_EMULATOR_PAIR_OF_ONE(cos, Pair)                                                                            \
  CUDA_EMULATOR_PAIR_OF_ONE(tanh, Pair)                                                                           \
  CUDA_EMULATOR_PAIR_OF_ONE(tanh_approx, Pair)                                                                    \
  CUDA_EMULATOR_PAIR_OF_ONE(sqrt, Pair)                                                                           \
  CUDA_EMULATOR_PAIR_OF_ONE(rsqrt, Pair)                                                                          \
  CUDA_EMULATOR_PAIR_OF_ONE(rcp, Pair)                                                                            \
  CUDA_EMULATOR_PAIR_OF_ONE(ceil, Pair)                                                                           \
  CUDA_EMULATOR_PAIR_OF_ONE(floor, Pair)                                                                          \
  CUDA_EMULATOR_PAIR_OF_ONE(rint, Pair)                                                                           \
  CUDA_EMULATOR_PAIR_OF_ONE(trunc, Pair)                                                                          \
  inline float __low2float(const Pair& a) { return float(a.x); }                                                  \
  inline float __high2float(const Pair& a) { return float(a.y); }

#define CUDA_EMULATOR_PAIR_OF_ONE(name, Pair) \
  inline Pair h2##name(const Pair& a) { return {h##name(a.x), h##name(a.y)}; }
#define CUDA_EMULATOR_PAIR_OF_TWO(name, one, Pair) \
  inline Pair name(const Pair& a, const Pair& b) { return {one(a.x, b.x), one(a.y, b.y)}; }
// As two numbers of one or zero, as two masks, and whether both hold.
#define CUDA_EMULATOR_PAIR_ANSWER(name, Pair, Type)                                                               \
  inline Pair __h##name##2(const Pair& a, const Pair& b) {                                                        \
    return {Type(int{__h##name(a.x, b.x)}), Type(int{__h##name(a.y, b.y)})};                                      \
  }                                                                                                               \
  inline unsigned __h##name##2_mask(const Pair& a, const Pair& b) {                                               \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                       \
  }                                                                                                               \
  inline bool __hb##name##2(const Pair& a, const Pair& b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }
#define CUDA_EMULATOR_PAIR_COMPARE(name, Pair, Type) \
  CUDA_EMULATOR_PAIR_ANSWER(name, Pair, Type)        \
  CUDA_EMULATOR_PAIR_ANSWER(name##u, Pair, Type)

CUDA_EMULATOR_SMALL_PAIR(__half2, __half, __half2_raw, __half_raw)
CUDA_EMULATOR_SMALL_PAIR(__nv_bfloat162, __nv_bfloat16, __nv_bfloat162_raw, __nv_bfloat16_raw)
#undef CUDA_EMULATOR_SMALL_PAIR
#undef CUDA_EMULATOR_PAIR_OF_ONE
#undef CUDA_EMULATOR_PAIR_OF_TWO
#undef CUDA_EMULATOR_PAIR_ANSWER
#undef CUDA_EMULATOR_PAIR_COMPARE

inline __half __float2half(float value) { return __half(value); }
inline float __half2float(__half value) { return float(value); }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float2half2_rn(float value) { return {__half(value), __half(value)}; }
inline __half2 __half2half2(__half value) { return {value, value}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 pair) { return pair.x; }
inline __half __high2half(__half2 pair) { return pair.y; }
inline __half2 __low2half2(__half2 pair) { return {pair.x, pair.x}; }
inline __half2 __high2half2(__half2 pair) { return {pair.y, pair.y}; }
inline __half2 __lowhigh2highlow(__half2 pair) { return {pair.y, pair.x}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline short __half_as_short(__half value) { return static_cast<short>(value.bits); }
inline __half __short_as_half(short bits) { return __half_raw{static_cast<unsigned short>(bits)}; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }

inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return float(value); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {__nv_bfloat16(value), __nv_bfloat16(value)}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair) { return pair.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair) { return pair.y; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 pair) { return {pair.x, pair.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 pair) { return {pair.y, pair.y}; }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 pair) { return {pair.y, pair.x}; }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
inline short __bfloat16_as_short(__nv_bfloat16 value) { return static_cast<short>(value.bits); }
inline __nv_bfloat16 __short_as_bfloat16(short bits) { return __nv_bfloat16_raw{static_cast<unsigned short>(bits)}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }

inline float2 __half22float2(__half2 pair) { return {float(pair.x), float(pair.y)}; }
inline float2 __bfloat1622float2(__nv_bfloat162 pair) { return {float(pair.x), float(pair.y)}; }
inline __half2 __float22half2_rn(float2 pair) { return {__half(pair.x), __half(pair.y)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 pair) { return {__nv_bfloat16(pair.x), __nv_bfloat16(pair.y)}; }

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
