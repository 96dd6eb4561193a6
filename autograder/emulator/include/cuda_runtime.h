// What a .cu file sees instead of CUDA's own header. docs/cuda_emulator.md lists what is there.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>

// translate.py reads these words and launches. As nvcc's they are macros, so that `extern "C"__global__` is two tokens.
#define __global__ __global__
#define __shared__ __shared__
#define __launch_bounds__ __launch_bounds__
#define __noinline__ __noinline__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __maxnreg__(registers)
#define __inline_hint__
#define __builtin_assume(condition) static_cast<void>(0)
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 900
#define CUDA_EMULATOR 1

#include "cuda_emulator/atomics.h"
#include "cuda_emulator/block.h"
#include "cuda_emulator/half.h"
#include "cuda_emulator/math.h"
#include "cuda_emulator/runtime.h"
#include "cuda_emulator/vectors.h"
#include "cuda_emulator/warp.h"

#define threadIdx (::cuda_emulator::current().index)
// Variables and no macros: a file may call one of its own the same. They are there before anything that runs.
inline constexpr const uint3& blockIdx = ::cuda_emulator::machine.block;
inline constexpr const dim3& blockDim = ::cuda_emulator::machine.block_dim;
inline constexpr const dim3& gridDim = ::cuda_emulator::machine.grid_dim;
inline constexpr int warpSize = 32;

CUDA_EMULATOR_UNCHECKED inline long long clock64() { static long long calls = 0; return ++calls; }
// Kernels that overlap with the one before: here that has ended.
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}
inline void __nanosleep(unsigned) { ::cuda_emulator::let_others_run(true); }
[[noreturn]] inline void cuda_emulator_trap(int line) {
  ::cuda_emulator::fail("Trap", line, "%s: __trap() at line %d.", ::cuda_emulator::this_thread().c_str(), line);
  ::cuda_emulator::stop_thread();
}
#define __trap() cuda_emulator_trap(__LINE__)
