// Fibers: stacks that take turns on one thread of the machine. One runs one CUDA thread.
//
// A switch saves only what a called function has to keep for its caller, so it costs a few nanoseconds. AddressSanitizer
// is told about every switch; without that it takes a fiber's stack for garbage.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define CUDA_EMULATOR_ASAN 1
#else
#define CUDA_EMULATOR_ASAN 0
#endif

extern "C" void cuda_emulator_switch(void** save, void* load);

#if defined(__x86_64__)
asm(R"(
.text
.globl cuda_emulator_switch
.hidden cuda_emulator_switch
.type cuda_emulator_switch, @function
cuda_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_emulator_switch, .-cuda_emulator_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl cuda_emulator_switch
.hidden cuda_emulator_switch
.type cuda_emulator_switch, %function
cuda_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cuda_emulator_switch, .-cuda_emulator_switch
)");
#else
#error "The emulator switches stacks on x86-64 and aarch64 only."
#endif

namespace cuda_emulator {

constexpr size_t guard_bytes = 4096;
constexpr size_t stack_bytes = (CUDA_EMULATOR_ASAN ? 256 : 64) * size_t{1024};

// A stack with a page below it that nobody may touch: what overflows it dies at once instead of writing elsewhere.
inline char* new_stack() {
  void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) {
    std::perror("cuda_emulator: no memory for a thread's stack");
    std::abort();
  }
  return static_cast<char*>(memory) + guard_bytes;
}

// What a stack has to hold so that the first switch to it enters `entry`.
inline void* prepared(char* stack, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + stack_bytes - 64);
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
  void* asan_state = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_size = 0;
};

// Go from one context to another; returns when somebody switches back. `for_ever`: `from` is never entered again.
inline void switch_to(Context& from, Context& to, [[maybe_unused]] bool for_ever = false) {
#if CUDA_EMULATOR_ASAN
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &from.asan_state, to.stack_bottom, to.stack_size);
#endif
  cuda_emulator_switch(&from.stack_pointer, to.stack_pointer);
#if CUDA_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(from.asan_state, nullptr, nullptr);
#endif
}

// The first thing on a new fiber. What the sanitizer says of the stack it came from is the scheduler's.
inline void arrived_on_new_stack([[maybe_unused]] Context& scheduler) {
#if CUDA_EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.stack_bottom, &scheduler.stack_size);
#endif
}

}  // namespace cuda_emulator
