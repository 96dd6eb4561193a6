// CuTe, read before a student's file that includes it: its headers take the path of a host without a GPU, as far as one has
// it. What needs a GPU's instructions stays an error, where a thread gets there.
#pragma once
#include "cuda_runtime.h"

namespace cuda_emulator {
// `what` is CuTe's own sentence: "Attempting to use SM80_CP_ASYNC_CACHEALWAYS without CP_ASYNC_SM80_ENABLED".
[[noreturn]] __attribute__((noinline)) inline void cute_gpu_only(const char* what) {
  const char* const begin = std::strstr(what, "SM");
  const size_t length = begin ? std::strcspn(begin, " ") : 0;
  const std::string name = length ? "`" + std::string(begin, length) + "` (CuTe)" : "CuTe's instructions for a GPU";
  gpu_only(name.c_str(), 0, reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1);
}
}  // namespace cuda_emulator

#pragma push_macro("__CUDA_ARCH__")
#pragma push_macro("__CUDACC_VER_MAJOR__")
#undef __CUDA_ARCH__
#undef __CUDACC_VER_MAJOR__
#define __CUDACC_VER_MAJOR__ 11
#include <cute/config.hpp>
// As nvcc does: a message then names the student's line that all of it was inlined into.
#undef CUTE_HOST_DEVICE
#undef CUTE_DEVICE
#define CUTE_HOST_DEVICE inline __attribute__((always_inline))
#define CUTE_DEVICE CUTE_HOST_DEVICE
#undef CUTE_INVALID_CONTROL_PATH
#define CUTE_INVALID_CONTROL_PATH(what) ::cuda_emulator::cute_gpu_only(what)
#include <cute/tensor.hpp>
#pragma pop_macro("__CUDACC_VER_MAJOR__")
#pragma pop_macro("__CUDA_ARCH__")
