// Arithmetic and conversions with a rounding of one's own: to the nearest, towards zero, down, up.
#pragma once

#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cuda_emulator/half.h"

namespace cuda_emulator {

// By `mode` of <cfenv>. Operands and result go through memory, so that nothing is computed outside of it.
template <class Result, class Operation, class... Operands>
Result rounded(int mode, Operation operation, Operands... operands) {
  std::fesetround(mode);
  volatile Result result = operation(static_cast<Operands>(*const_cast<const volatile Operands*>(&operands))...);
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T>
T to_whole(T value, int mode) {
  switch (mode) {
    case FE_TOWARDZERO: return std::trunc(value);
    case FE_DOWNWARD: return std::floor(value);
    case FE_UPWARD: return std::ceil(value);
    default: return std::nearbyint(value);
  }
}
// What does not fit becomes the nearest number that does.
template <class To, class From>
To to_integer(From value, int mode) {
  using Limits = std::numeric_limits<To>;
  constexpr bool wide = sizeof(To) == 8 || std::is_same_v<From, double>;
  if (value != value) return wide ? static_cast<To>(std::uint64_t{1} << (sizeof(To) * 8 - 1)) : To{0};
  const double whole = to_whole(static_cast<double>(value), mode);
  if (whole <= static_cast<double>(Limits::min())) return Limits::min();
  return whole >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<To>(whole);
}

template <class Small>
Small with_bits(std::uint16_t bits) {
  Small value;
  value.bits = bits;
  return value;
}
// A long double has every integer and every double exactly; its neighbours among the small numbers are compared with it.
template <class Small>
Small to_small(long double value, int mode) {
  const Small nearest(static_cast<float>(value));
  const auto magnitude = std::fabs(value);
  std::uint16_t below = nearest.bits & 0x7fff;
  const auto of = [](std::uint16_t bits) { return static_cast<long double>(static_cast<float>(with_bits<Small>(bits))); };
  if (value != value || of(below) == magnitude) return nearest;
  if (of(below) > magnitude) --below;
  const auto above = static_cast<std::uint16_t>(below + 1);
  const auto down = magnitude - of(below), up = of(above) - magnitude;
  const bool away = mode == FE_TOWARDZERO ? false
                    : mode == FE_DOWNWARD ? value < 0
                    : mode == FE_UPWARD   ? value > 0
                    : std::isinf(up)      ? std::isinf(static_cast<float>(nearest))
                                          : up < down || (up == down && below % 2 == 1);
  return with_bits<Small>(static_cast<std::uint16_t>((away ? above : below) | (value < 0 ? 0x8000 : 0)));
}

}  // namespace cuda_emulator

#define CUDA_EMULATOR_ROUNDINGS(F, ...) \
  F(rn, FE_TONEAREST, __VA_ARGS__) F(rz, FE_TOWARDZERO, __VA_ARGS__) F(rd, FE_DOWNWARD, __VA_ARGS__) F(ru, FE_UPWARD, __VA_ARGS__)

#define CUDA_EMULATOR_ARITHMETIC(suffix, mode, letter, type)                                                        \
  inline type __##letter##add_##suffix(type x, type y) {                                                            \
    return ::cuda_emulator::rounded<type>(mode, [](type a, type b) { return a + b; }, x, y);                        \
  }                                                                                                                 \
  inline type __##letter##sub_##suffix(type x, type y) {                                                            \
    return ::cuda_emulator::rounded<type>(mode, [](type a, type b) { return a - b; }, x, y);                        \
  }                                                                                                                 \
  inline type __##letter##mul_##suffix(type x, type y) {                                                            \
    return ::cuda_emulator::rounded<type>(mode, [](type a, type b) { return a * b; }, x, y);                        \
  }                                                                                                                 \
  inline type __##letter##div_##suffix(type x, type y) {                                                            \
    return ::cuda_emulator::rounded<type>(mode, [](type a, type b) { return a / b; }, x, y);                        \
  }                                                                                                                 \
  inline type __##letter##rcp_##suffix(type x) {                                                                    \
    return ::cuda_emulator::rounded<type>(mode, [](type a) { return 1 / a; }, x);                                   \
  }                                                                                                                 \
  inline type __##letter##sqrt_##suffix(type x) {                                                                   \
    return ::cuda_emulator::rounded<type>(mode, [](type a) { return std::sqrt(a); }, x);                            \
  }
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_ARITHMETIC, f, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_ARITHMETIC, d, double)
#undef CUDA_EMULATOR_ARITHMETIC

#define CUDA_EMULATOR_FMA(suffix, mode, name, type)                                                                 \
  inline type __##name##_##suffix(type x, type y, type z) {                                                         \
    return ::cuda_emulator::rounded<type>(mode, [](type a, type b, type c) { return std::fma(a, b, c); }, x, y, z); \
  }
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_FMA, fmaf, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_FMA, fmaf_ieee, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_FMA, fma, double)
#undef CUDA_EMULATOR_FMA

#define CUDA_EMULATOR_PAIR(suffix, mode, ...)                                                                       \
  inline float2 __fadd2_##suffix(float2 a, float2 b) {                                                              \
    return {__fadd_##suffix(a.x, b.x), __fadd_##suffix(a.y, b.y)};                                                  \
  }                                                                                                                 \
  inline float2 __fmul2_##suffix(float2 a, float2 b) {                                                              \
    return {__fmul_##suffix(a.x, b.x), __fmul_##suffix(a.y, b.y)};                                                  \
  }                                                                                                                 \
  inline float2 __ffma2_##suffix(float2 a, float2 b, float2 c) {                                                    \
    return {__fmaf_##suffix(a.x, b.x, c.x), __fmaf_##suffix(a.y, b.y, c.y)};                                        \
  }
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_PAIR, )
#undef CUDA_EMULATOR_PAIR

// name2name_suffix(value), to an integer and from one.
#define CUDA_EMULATOR_TO_INTEGER(suffix, mode, from, From, to, To) \
  inline To __##from##2##to##_##suffix(From value) { return ::cuda_emulator::to_integer<To>(static_cast<CUDA_EMULATOR_WIDE(From)>(value), mode); }
#define CUDA_EMULATOR_WIDE(From) std::conditional_t<std::is_same_v<From, double>, double, float>
#define CUDA_EMULATOR_TO_FLOAT(suffix, mode, from, From, to, To) \
  inline To __##from##2##to##_##suffix(From value) {             \
    return ::cuda_emulator::rounded<To>(mode, [](From number) { return static_cast<To>(number); }, value); \
  }
#define CUDA_EMULATOR_TO_SMALL(suffix, mode, from, From, to, To) \
  inline To __##from##2##to##_##suffix(From value) { return ::cuda_emulator::to_small<To>(value, mode); }

#define CUDA_EMULATOR_INTEGERS(kind, name, Type)                                                 \
  CUDA_EMULATOR_ROUNDINGS(kind, name, Type, int, int)                                            \
  CUDA_EMULATOR_ROUNDINGS(kind, name, Type, uint, unsigned)                                      \
  CUDA_EMULATOR_ROUNDINGS(kind, name, Type, ll, long long)                                       \
  CUDA_EMULATOR_ROUNDINGS(kind, name, Type, ull, unsigned long long)
CUDA_EMULATOR_INTEGERS(CUDA_EMULATOR_TO_INTEGER, float, float)
CUDA_EMULATOR_INTEGERS(CUDA_EMULATOR_TO_INTEGER, double, double)
CUDA_EMULATOR_INTEGERS(CUDA_EMULATOR_TO_INTEGER, half, __half)
CUDA_EMULATOR_INTEGERS(CUDA_EMULATOR_TO_INTEGER, bfloat16, __nv_bfloat16)
#undef CUDA_EMULATOR_INTEGERS

#define CUDA_EMULATOR_SMALL(name, Type)                                                          \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_INTEGER, name, Type, short, short)                    \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_INTEGER, name, Type, ushort, unsigned short)          \
  CUDA_EMULATOR_TO_INTEGER(rz, FE_TOWARDZERO, name, Type, char, signed char)                     \
  CUDA_EMULATOR_TO_INTEGER(rz, FE_TOWARDZERO, name, Type, uchar, unsigned char)                  \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, short, short, name, Type)                      \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, ushort, unsigned short, name, Type)            \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, int, int, name, Type)                          \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, uint, unsigned, name, Type)                    \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, ll, long long, name, Type)                     \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, ull, unsigned long long, name, Type)           \
  CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_SMALL, float, float, name, Type)
CUDA_EMULATOR_SMALL(half, __half)
CUDA_EMULATOR_SMALL(bfloat16, __nv_bfloat16)
#undef CUDA_EMULATOR_SMALL

CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, int, int, float, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, uint, unsigned, float, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, ll, long long, float, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, ull, unsigned long long, float, float)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, ll, long long, double, double)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, ull, unsigned long long, double, double)
CUDA_EMULATOR_ROUNDINGS(CUDA_EMULATOR_TO_FLOAT, double, double, float, float)
#undef CUDA_EMULATOR_TO_INTEGER
#undef CUDA_EMULATOR_TO_FLOAT
#undef CUDA_EMULATOR_TO_SMALL
#undef CUDA_EMULATOR_WIDE
#undef CUDA_EMULATOR_ROUNDINGS

inline double __int2double_rn(int value) { return value; }
inline double __uint2double_rn(unsigned value) { return value; }
inline __half __double2half(double value) { return ::cuda_emulator::to_small<__half>(value, FE_TONEAREST); }
inline __nv_bfloat16 __double2bfloat16(double value) { return ::cuda_emulator::to_small<__nv_bfloat16>(value, FE_TONEAREST); }
