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
    Type& operator+=(Type other) { return *this = Type(float(*this) + float(other)); }                            \
    Type& operator-=(Type other) { return *this = Type(float(*this) - float(other)); }                            \
    Type& operator*=(Type other) { return *this = Type(float(*this) * float(other)); }                            \
    Type& operator/=(Type other) { return *this = Type(float(*this) / float(other)); }                            \
  };                                                                                                              \
  inline Type operator+(Type a, Type b) { return Type(float(a) + float(b)); }                                     \
  inline Type operator-(Type a, Type b) { return Type(float(a) - float(b)); }                                     \
  inline Type operator*(Type a, Type b) { return Type(float(a) * float(b)); }                                     \
  inline Type operator/(Type a, Type b) { return Type(float(a) / float(b)); }                                     \
  inline Type operator-(Type a) { return Type(-float(a)); }                                                       \
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
  inline bool __hlt(Type a, Type b) { return a < b; }                                                             \
  inline bool __hgt(Type a, Type b) { return a > b; }                                                             \
  inline bool __hle(Type a, Type b) { return a <= b; }                                                            \
  inline bool __hge(Type a, Type b) { return a >= b; }                                                            \
  inline bool __heq(Type a, Type b) { return a == b; }                                                            \
  inline bool __hisnan(Type a) { return std::isnan(float(a)); }                                                   \
  inline Type hexp(Type a) { return Type(std::exp(float(a))); }                                                   \
  inline Type hlog(Type a) { return Type(std::log(float(a))); }                                                   \
  inline Type hsqrt(Type a) { return Type(std::sqrt(float(a))); }                                                 \
  inline Type hrsqrt(Type a) { return Type(1.0f / std::sqrt(float(a))); }                                         \
  inline Type hrcp(Type a) { return Type(1.0f / float(a)); }

CUDA_EMULATOR_SMALL_FLOAT(__half, __half_raw, half_bits, half_value)
CUDA_EMULATOR_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat16_raw, bfloat_bits, bfloat_value)
#undef CUDA_EMULATOR_SMALL_FLOAT

#define CUDA_EMULATOR_SMALL_PAIR(Pair, Type)                                                                      \
  struct alignas(4) Pair {                                                                                        \
    Type x, y;                                                                                                    \
    Pair() = default;                                                                                             \
    Pair(Type x_, Type y_) : x(x_), y(y_) {}                                                                      \
    Pair& operator+=(const Pair& other) { return x += other.x, y += other.y, *this; }                             \
    Pair& operator*=(const Pair& other) { return x *= other.x, y *= other.y, *this; }                             \
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
  inline float __low2float(const Pair& a) { return float(a.x); }                                                  \
  inline float __high2float(const Pair& a) { return float(a.y); }

CUDA_EMULATOR_SMALL_PAIR(__half2, __half)
CUDA_EMULATOR_SMALL_PAIR(__nv_bfloat162, __nv_bfloat16)
#undef CUDA_EMULATOR_SMALL_PAIR

inline __half __float2half(float value) { return __half(value); }
inline __half __float2half_rn(float value) { return __half(value); }
inline __half __double2half(double value) { return __half(value); }
inline __half __int2half_rn(int value) { return __half(value); }
inline float __half2float(__half value) { return float(value); }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float2half2_rn(float value) { return {__half(value), __half(value)}; }
inline __half2 __half2half2(__half value) { return {value, value}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 pair) { return pair.x; }
inline __half __high2half(__half2 pair) { return pair.y; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }

inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return float(value); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {__nv_bfloat16(value), __nv_bfloat16(value)}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair) { return pair.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair) { return pair.y; }
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
