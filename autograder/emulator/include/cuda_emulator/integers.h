// Intrinsics on integers, and on two or four of them in one word.
#pragma once

#include <cstdint>

#include "cuda_emulator/vectors.h"

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
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
// Where the offset-th bit that is set stands, from `base` on upwards, or downwards where the offset is negative.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return mask >> base & 1 ? base : 0xffffffffu;
  for (int at = static_cast<int>(base), left = offset > 0 ? offset : -offset; at >= 0 && at < 32; at += offset > 0 ? 1 : -1) {
    if ((mask >> at & 1) && --left == 0) return static_cast<unsigned>(at);
  }
  return 0xffffffffu;
}

// Of products of 24 bits the upper ones of the factors do not count.
inline int __mul24(int x, int y) {
  return static_cast<int>(static_cast<unsigned>(x << 8 >> 8) * static_cast<unsigned>(y << 8 >> 8));
}
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(static_cast<std::uint64_t>(x) * y >> 32); }
inline long long __mul64hi(long long x, long long y) { return static_cast<long long>(static_cast<__int128>(x) * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1); }
inline unsigned __uhadd(unsigned x, unsigned y) { return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y) >> 1); }
inline unsigned __urhadd(unsigned x, unsigned y) { return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y + 1) >> 1); }
inline unsigned __sad(int x, int y, unsigned z) {
  return z + (x > y ? static_cast<unsigned>(x) - static_cast<unsigned>(y) : static_cast<unsigned>(y) - static_cast<unsigned>(x));
}
inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
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

namespace cuda_emulator {

template <int Parts>
constexpr int part_bits = 32 / Parts;
template <int Parts>
constexpr int part_mask = Parts == 2 ? 0xffff : 0xff;
template <int Parts, bool Signed>
constexpr int part_most = Signed ? part_mask<Parts> / 2 : part_mask<Parts>;
template <int Parts, bool Signed>
constexpr int part_least = Signed ? -part_most<Parts, true> - 1 : 0;

template <int Parts, bool Signed>
constexpr int part(unsigned word, int number) {
  const unsigned bits = word >> (number * part_bits<Parts>) & part_mask<Parts>;
  if (!Signed) return static_cast<int>(bits);
  return Parts == 2 ? static_cast<int>(static_cast<std::int16_t>(bits)) : static_cast<int>(static_cast<std::int8_t>(bits));
}
// Each part of the words on its own; what does not fit is cut off.
template <int Parts, bool Signed, class Operation, class... Words>
constexpr unsigned by_parts(Operation operation, Words... words) {
  unsigned result = 0;
  for (int i = 0; i < Parts; ++i) {
    result |= (static_cast<unsigned>(operation(part<Parts, Signed>(words, i)...)) & part_mask<Parts>) << (i * part_bits<Parts>);
  }
  return result;
}
template <int Parts, bool Signed>
constexpr int fitting(int value) {
  return value > part_most<Parts, Signed>    ? part_most<Parts, Signed>
         : value < part_least<Parts, Signed> ? part_least<Parts, Signed>
                                             : value;
}
constexpr int distance(int a, int b) { return a > b ? a - b : b - a; }

}  // namespace cuda_emulator

#define CUDA_EMULATOR_UNARY(name, parts, is_signed, expression)                                                   \
  inline unsigned name##parts(unsigned x) {                                                                       \
    return ::cuda_emulator::by_parts<parts, is_signed>([](int a) { return expression; }, x);                      \
  }
#define CUDA_EMULATOR_BINARY(name, parts, is_signed, expression)                                                  \
  inline unsigned name##parts(unsigned x, unsigned y) {                                                           \
    return ::cuda_emulator::by_parts<parts, is_signed>([](int a, int b) { return expression; }, x, y);            \
  }
#define CUDA_EMULATOR_COMPARE(name, parts, is_signed, expression)                                                 \
  CUDA_EMULATOR_BINARY(__vcmp##name, parts, is_signed, (expression) ? -1 : 0)                                     \
  CUDA_EMULATOR_BINARY(__vset##name, parts, is_signed, (expression) ? 1 : 0)
#define CUDA_EMULATOR_SUM(name, parts, is_signed)                                                                 \
  inline unsigned name##parts(unsigned x, unsigned y) {                                                           \
    unsigned sum = 0;                                                                                             \
    for (int i = 0; i < parts; ++i) {                                                                             \
      sum += static_cast<unsigned>(::cuda_emulator::distance(::cuda_emulator::part<parts, is_signed>(x, i),       \
                                                             ::cuda_emulator::part<parts, is_signed>(y, i)));     \
    }                                                                                                             \
    return sum;                                                                                                   \
  }
#define CUDA_EMULATOR_WORDS(parts)                                                                                \
  CUDA_EMULATOR_UNARY(__vabs, parts, true, a < 0 ? -a : a)                                                        \
  CUDA_EMULATOR_UNARY(__vabsss, parts, true, (::cuda_emulator::fitting<parts, true>(a < 0 ? -a : a)))             \
  CUDA_EMULATOR_UNARY(__vneg, parts, true, -a)                                                                    \
  CUDA_EMULATOR_UNARY(__vnegss, parts, true, (::cuda_emulator::fitting<parts, true>(-a)))                         \
  CUDA_EMULATOR_BINARY(__vadd, parts, false, a + b)                                                               \
  CUDA_EMULATOR_BINARY(__vaddss, parts, true, (::cuda_emulator::fitting<parts, true>(a + b)))                     \
  CUDA_EMULATOR_BINARY(__vaddus, parts, false, (::cuda_emulator::fitting<parts, false>(a + b)))                   \
  CUDA_EMULATOR_BINARY(__vsub, parts, false, a - b)                                                               \
  CUDA_EMULATOR_BINARY(__vsubss, parts, true, (::cuda_emulator::fitting<parts, true>(a - b)))                     \
  CUDA_EMULATOR_BINARY(__vsubus, parts, false, (::cuda_emulator::fitting<parts, false>(a - b)))                   \
  CUDA_EMULATOR_BINARY(__vabsdiffs, parts, true, ::cuda_emulator::distance(a, b))                                 \
  CUDA_EMULATOR_BINARY(__vabsdiffu, parts, false, ::cuda_emulator::distance(a, b))                                \
  CUDA_EMULATOR_BINARY(__vavgs, parts, true, (a + b + (a + b >= 0)) >> 1)                                         \
  CUDA_EMULATOR_BINARY(__vavgu, parts, false, (a + b + 1) >> 1)                                                   \
  CUDA_EMULATOR_BINARY(__vhaddu, parts, false, (a + b) >> 1)                                                      \
  CUDA_EMULATOR_BINARY(__vmaxs, parts, true, a > b ? a : b)                                                       \
  CUDA_EMULATOR_BINARY(__vmaxu, parts, false, a > b ? a : b)                                                      \
  CUDA_EMULATOR_BINARY(__vmins, parts, true, a < b ? a : b)                                                       \
  CUDA_EMULATOR_BINARY(__vminu, parts, false, a < b ? a : b)                                                      \
  CUDA_EMULATOR_SUM(__vsads, parts, true)                                                                         \
  CUDA_EMULATOR_SUM(__vsadu, parts, false)                                                                        \
  CUDA_EMULATOR_COMPARE(eq, parts, false, a == b)                                                                 \
  CUDA_EMULATOR_COMPARE(ne, parts, false, a != b)                                                                 \
  CUDA_EMULATOR_COMPARE(ges, parts, true, a >= b)                                                                 \
  CUDA_EMULATOR_COMPARE(geu, parts, false, a >= b)                                                                \
  CUDA_EMULATOR_COMPARE(gts, parts, true, a > b)                                                                  \
  CUDA_EMULATOR_COMPARE(gtu, parts, false, a > b)                                                                 \
  CUDA_EMULATOR_COMPARE(les, parts, true, a <= b)                                                                 \
  CUDA_EMULATOR_COMPARE(leu, parts, false, a <= b)                                                                \
  CUDA_EMULATOR_COMPARE(lts, parts, true, a < b)                                                                  \
  CUDA_EMULATOR_COMPARE(ltu, parts, false, a < b)
CUDA_EMULATOR_WORDS(2)
CUDA_EMULATOR_WORDS(4)
#undef CUDA_EMULATOR_WORDS
#undef CUDA_EMULATOR_SUM
#undef CUDA_EMULATOR_COMPARE
#undef CUDA_EMULATOR_BINARY
#undef CUDA_EMULATOR_UNARY

// The larger and smaller of two or three, of a sum and a number, and not below zero.
namespace cuda_emulator {
template <class T>
constexpr T larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
constexpr T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr T sum_of(T a, T b) {
  return static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
}  // namespace cuda_emulator

#define CUDA_EMULATOR_EXTREME(name, choose)                                                                          \
  inline int __vi##name##3_s32(int a, int b, int c) { return choose(choose(a, b), c); }                              \
  inline unsigned __vi##name##3_u32(unsigned a, unsigned b, unsigned c) { return choose(choose(a, b), c); }          \
  inline int __vi##name##3_s32_relu(int a, int b, int c) { return ::cuda_emulator::larger(0, choose(choose(a, b), c)); } \
  inline int __vi##name##_s32_relu(int a, int b) { return ::cuda_emulator::larger(0, choose(a, b)); }                \
  inline int __viadd##name##_s32(int a, int b, int c) { return choose(::cuda_emulator::sum_of(a, b), c); }           \
  inline unsigned __viadd##name##_u32(unsigned a, unsigned b, unsigned c) { return choose(a + b, c); }               \
  inline int __viadd##name##_s32_relu(int a, int b, int c) {                                                         \
    return ::cuda_emulator::larger(0, choose(::cuda_emulator::sum_of(a, b), c));                                     \
  }                                                                                                                  \
  inline unsigned __vi##name##3_s16x2(unsigned x, unsigned y, unsigned z) {                                          \
    return ::cuda_emulator::by_parts<2, true>([](int a, int b, int c) { return choose(choose(a, b), c); }, x, y, z); \
  }                                                                                                                  \
  inline unsigned __vi##name##3_u16x2(unsigned x, unsigned y, unsigned z) {                                          \
    return ::cuda_emulator::by_parts<2, false>([](int a, int b, int c) { return choose(choose(a, b), c); }, x, y, z); \
  }                                                                                                                  \
  inline unsigned __vi##name##3_s16x2_relu(unsigned x, unsigned y, unsigned z) {                                     \
    return __vmaxs2(0, __vi##name##3_s16x2(x, y, z));                                                                \
  }                                                                                                                  \
  inline unsigned __vi##name##_s16x2_relu(unsigned x, unsigned y) { return __vmaxs2(0, __v##name##s2(x, y)); }       \
  inline unsigned __viadd##name##_s16x2(unsigned x, unsigned y, unsigned z) { return __v##name##s2(__vadd2(x, y), z); } \
  inline unsigned __viadd##name##_u16x2(unsigned x, unsigned y, unsigned z) { return __v##name##u2(__vadd2(x, y), z); } \
  inline unsigned __viadd##name##_s16x2_relu(unsigned x, unsigned y, unsigned z) {                                   \
    return __vmaxs2(0, __viadd##name##_s16x2(x, y, z));                                                              \
  }                                                                                                                  \
  inline int __vib##name##_s32(int a, int b, bool* first) { return *first = choose(a, b) == a, choose(a, b); }       \
  inline unsigned __vib##name##_u32(unsigned a, unsigned b, bool* first) { return *first = choose(a, b) == a, choose(a, b); } \
  inline unsigned __vib##name##_s16x2(unsigned x, unsigned y, bool* high, bool* low) {                               \
    const unsigned found = __v##name##s2(x, y);                                                                      \
    return *high = found >> 16 == x >> 16, *low = (found ^ x) << 16 == 0, found;                                     \
  }                                                                                                                  \
  inline unsigned __vib##name##_u16x2(unsigned x, unsigned y, bool* high, bool* low) {                               \
    const unsigned found = __v##name##u2(x, y);                                                                      \
    return *high = found >> 16 == x >> 16, *low = (found ^ x) << 16 == 0, found;                                     \
  }
CUDA_EMULATOR_EXTREME(max, ::cuda_emulator::larger)
CUDA_EMULATOR_EXTREME(min, ::cuda_emulator::smaller)
#undef CUDA_EMULATOR_EXTREME

// Sums of products of the parts of two words.
namespace cuda_emulator {
template <bool Signed>
constexpr unsigned dot4(unsigned x, unsigned y, unsigned sum) {
  for (int i = 0; i < 4; ++i) sum += static_cast<unsigned>(part<4, Signed>(x, i) * part<4, Signed>(y, i));
  return sum;
}
template <bool Signed>
constexpr unsigned dot2(unsigned x, unsigned y, unsigned sum, int begin) {
  for (int i = 0; i < 2; ++i) sum += static_cast<unsigned>(part<2, Signed>(x, i) * part<4, Signed>(y, begin + i));
  return sum;
}
template <class Vector>
unsigned word_of(const Vector& vector) {
  unsigned word;
  static_assert(sizeof vector == sizeof word);
  __builtin_memcpy(&word, &vector, sizeof word);
  return word;
}
}  // namespace cuda_emulator
inline int __dp4a(int x, int y, int sum) { return static_cast<int>(::cuda_emulator::dot4<true>(x, y, sum)); }
inline unsigned __dp4a(unsigned x, unsigned y, unsigned sum) { return ::cuda_emulator::dot4<false>(x, y, sum); }
inline int __dp4a(char4 x, char4 y, int sum) {
  return __dp4a(static_cast<int>(::cuda_emulator::word_of(x)), static_cast<int>(::cuda_emulator::word_of(y)), sum);
}
inline unsigned __dp4a(uchar4 x, uchar4 y, unsigned sum) {
  return __dp4a(::cuda_emulator::word_of(x), ::cuda_emulator::word_of(y), sum);
}
#define CUDA_EMULATOR_DOT2(name, begin)                                                                                        \
  inline int name(int x, int y, int sum) { return static_cast<int>(::cuda_emulator::dot2<true>(x, y, sum, begin)); }           \
  inline unsigned name(unsigned x, unsigned y, unsigned sum) { return ::cuda_emulator::dot2<false>(x, y, sum, begin); }        \
  inline int name(short2 x, char4 y, int sum) {                                                                                \
    return name(static_cast<int>(::cuda_emulator::word_of(x)), static_cast<int>(::cuda_emulator::word_of(y)), sum);            \
  }                                                                                                                            \
  inline unsigned name(ushort2 x, uchar4 y, unsigned sum) {                                                                    \
    return name(::cuda_emulator::word_of(x), ::cuda_emulator::word_of(y), sum);                                                \
  }
CUDA_EMULATOR_DOT2(__dp2a_lo, 0)
CUDA_EMULATOR_DOT2(__dp2a_hi, 2)
#undef CUDA_EMULATOR_DOT2

inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long llmin(long long a, long long b) { return a < b ? a : b; }
inline long long llmax(long long a, long long b) { return a > b ? a : b; }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
