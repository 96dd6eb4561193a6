// dim3 and the built-in vector types, with the sizes and alignments of CUDA.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

#define CUDA_EMULATOR_VECTORS(name, type, align2, align4)                                     \
  struct name##1 { type x; };                                                                 \
  struct alignas(align2) name##2 { type x, y; };                                              \
  struct name##3 { type x, y, z; };                                                           \
  struct alignas(align4) name##4 { type x, y, z, w; };                                        \
  constexpr name##1 make_##name##1(type x) { return {x}; }                                    \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }                         \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }              \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

CUDA_EMULATOR_VECTORS(char, signed char, 2, 4)
CUDA_EMULATOR_VECTORS(uchar, unsigned char, 2, 4)
CUDA_EMULATOR_VECTORS(short, short, 4, 8)
CUDA_EMULATOR_VECTORS(ushort, unsigned short, 4, 8)
CUDA_EMULATOR_VECTORS(int, int, 8, 16)
CUDA_EMULATOR_VECTORS(long, long, 16, 16)
CUDA_EMULATOR_VECTORS(ulong, unsigned long, 16, 16)
CUDA_EMULATOR_VECTORS(longlong, long long, 16, 16)
CUDA_EMULATOR_VECTORS(ulonglong, unsigned long long, 16, 16)
CUDA_EMULATOR_VECTORS(float, float, 8, 16)
CUDA_EMULATOR_VECTORS(double, double, 16, 16)
#undef CUDA_EMULATOR_VECTORS

// The same of four long ones, by how they are aligned.
#define CUDA_EMULATOR_WIDE(name, type)                                                                        \
  using name##4_16a = name##4;                                                                                \
  struct alignas(32) name##4_32a { type x, y, z, w; };                                                        \
  constexpr name##4_16a make_##name##4_16a(type x, type y, type z, type w) { return {x, y, z, w}; }           \
  constexpr name##4_32a make_##name##4_32a(type x, type y, type z, type w) { return {x, y, z, w}; }
CUDA_EMULATOR_WIDE(long, long)
CUDA_EMULATOR_WIDE(ulong, unsigned long)
CUDA_EMULATOR_WIDE(longlong, long long)
CUDA_EMULATOR_WIDE(ulonglong, unsigned long long)
CUDA_EMULATOR_WIDE(double, double)
#undef CUDA_EMULATOR_WIDE

struct uint1 {
  unsigned x;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
constexpr uint1 make_uint1(unsigned x) { return {x}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
