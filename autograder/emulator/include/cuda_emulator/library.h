#pragma once
// Functions of a library that is not here, each with the line of its call.
#include "block.h"

namespace cuda_emulator {
// The first argument of a library's function, and the line of the call.
struct Library {
  template <class Argument>
  Library(Argument&&, int line_of_call = __builtin_LINE()) : line(line_of_call) {}
  int line;
};
}  // namespace cuda_emulator

#define CUDA_EMULATOR_ABSENT(library, status, name)                      \
  template <class... Arguments>                                          \
  status name(::cuda_emulator::Library first, Arguments&&...) {          \
    ::cuda_emulator::gpu_only("`" #name "` (" library ")", first.line);  \
  }
