// Complex numbers as pairs of floats or doubles.
#pragma once
#include "cuda_runtime.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define CUDA_EMULATOR_COMPLEX(Complex, T, make, f)                                                                        \
  inline Complex make(T x, T y) { return {x, y}; }                                                                        \
  inline T cuCreal##f(Complex a) { return a.x; }                                                                          \
  inline T cuCimag##f(Complex a) { return a.y; }                                                                          \
  inline Complex cuConj##f(Complex a) { return {a.x, -a.y}; }                                                             \
  inline Complex cuCadd##f(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }                                       \
  inline Complex cuCsub##f(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }                                       \
  inline Complex cuCmul##f(Complex a, Complex b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }               \
  inline Complex cuCfma##f(Complex a, Complex b, Complex c) { return cuCadd##f(cuCmul##f(a, b), c); }                     \
  inline T cuCabs##f(Complex a) { return std::hypot(a.x, a.y); }                                                          \
  /* Scaled, so that no square is too large or too small. */                                                              \
  inline Complex cuCdiv##f(Complex a, Complex b) {                                                                        \
    const T size = std::fabs(b.x) + std::fabs(b.y);                                                                       \
    const T ax = a.x / size, ay = a.y / size, bx = b.x / size, by = b.y / size, square = bx * bx + by * by;               \
    return {(ax * bx + ay * by) / square, (ay * bx - ax * by) / square};                                                  \
  }
CUDA_EMULATOR_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, f)
CUDA_EMULATOR_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, )
#undef CUDA_EMULATOR_COMPLEX

inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) { return {static_cast<float>(a.x), static_cast<float>(a.y)}; }
