// Fibers: stacks that take turns on one thread of the machine. One runs one CUDA thread, one the launcher.
//
// A switch saves only what a called function has to keep for its caller, so it costs a few nanoseconds.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" void cuda_emulator_switch(void** save, void* load);

namespace cuda_emulator {

constexpr size_t guard_bytes = 64 * 1024;
constexpr size_t stack_bytes = 128 * 1024;         // Of a CUDA thread.
constexpr size_t host_stack_bytes = 8 * 1024 * 1024;  // Of the launcher, as on Linux.

// A stack with pages below it that nobody may touch: what overflows it dies at once instead of writing elsewhere.
inline char* new_stack(size_t bytes) {
  void* memory = mmap(nullptr, guard_bytes + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<char*>(memory) + guard_bytes, bytes, PROT_READ | PROT_WRITE) != 0) {
    std::perror("cuda_emulator: no memory for a thread's stack");
    std::abort();
  }
  return static_cast<char*>(memory) + guard_bytes;
}

// What a stack has to hold so that the first switch to it enters `entry`.
inline void* prepared(char* stack, size_t bytes, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + bytes - 64);
#if defined(__x86_64__)
  *--top = nullptr;  // Where `entry` would return to; it never does. Keeps the stack aligned as after a call.
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
#else
  top -= 20;
  for (int saved = 0; saved < 20; ++saved) top[saved] = nullptr;
  top[11] = reinterpret_cast<void*>(entry);
#endif
  return top;
}

// One side of a switch: a fiber's, or the scheduler's.
struct Context {
  void* stack_pointer = nullptr;
};

// Go from one context to another; returns when somebody switches back.
inline void switch_to(Context& from, const Context& to) { cuda_emulator_switch(&from.stack_pointer, to.stack_pointer); }

}  // namespace cuda_emulator
