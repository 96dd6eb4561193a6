// One block at a time, its threads as fibers: barriers, shared memory, launches, and what goes wrong in them.
//
// The scheduler resumes every thread that can go on, in the order that was asked for, until all wait or are done; then it
// lets warps and the block pass their barriers. A missing __syncthreads() gives another result in another order.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda_emulator/fiber.h"
#include "cuda_emulator/vectors.h"

namespace cuda_emulator {

constexpr unsigned warp_size = 32;
constexpr unsigned max_block_threads = 1024;
constexpr size_t max_static_shared_bytes = 48 * 1024;
constexpr size_t max_shared_bytes = 227 * 1024;
constexpr unsigned char poison = 0xCB;  // As a float about -2.7e7, as a double about -2.5e54: it shows in a result.

enum class State : unsigned char { ready, at_barrier, at_warp, done };
enum class Order : int { forward = 0, reverse = 1, shuffled = 2 };

// One value that a lane hands to its warp.
struct alignas(16) Slot {
  unsigned char bytes[16];
};

struct Thread {
  Context context;
  char* stack = nullptr;
  uint3 index{};
  unsigned linear = 0;
  State state = State::ready;
  int line = 0;           // Where it waits.
  const char* operation = "";  // What it waits in.
  unsigned mask = 0;      // Whom it waits for.
  Slot given{};           // What it hands in.
  Slot shown{};           // What the others of its warp see of it.
};

// Everything there is one of, because one launch runs at a time.
struct Machine {
  std::vector<Thread> threads;
  unsigned count = 0;  // Threads of a block of this launch.
  Thread* current = nullptr;
  Context scheduler;
  uint3 block{};
  dim3 block_dim, grid_dim;
  void (*body)(void*) = nullptr;
  void* arguments = nullptr;
  const char* kernel = "";
  std::vector<unsigned char> dynamic_shared;
  std::uint64_t block_number = 0;  // Counts all blocks of all launches: says whose content shared memory holds.
  size_t static_shared_bytes = 0;
  size_t dynamic_limit = max_static_shared_bytes;
  Order order = Order::forward;
  std::mt19937 shuffle;
  std::string trouble;
};

inline Machine machine;

// Say what went wrong, once; the first thing is the cause, what follows from it is noise.
__attribute__((format(printf, 1, 2))) inline void fail(const char* format, ...) {
  if (!machine.trouble.empty()) return;
  char text[1000];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  machine.trouble = text;
}

inline Thread& current() { return *machine.current; }
inline unsigned lane() { return machine.current->linear % warp_size; }

inline std::string block_name(uint3 at) {
  char text[64];
  std::snprintf(text, sizeof text, "block (%u,%u,%u)", at.x, at.y, at.z);
  return text;
}

// Let somebody else run; returns when the scheduler resumes this thread.
inline void wait_as(State state) {
  Thread& self = current();
  self.state = state;
  switch_to(self.context, machine.scheduler);
}

// End this thread for ever, and with it the launch: it said what went wrong.
[[noreturn]] inline void stop_thread() {
  Thread& self = current();
  self.state = State::done;
  switch_to(self.context, machine.scheduler, true);
  __builtin_unreachable();
}

inline void enter_thread() {
  arrived_on_new_stack(machine.scheduler);
  machine.body(machine.arguments);
  stop_thread();
}

// --- barriers --------------------------------------------------------------------------------------------------------

inline void barrier(int line, const char* operation) {
  if (machine.current == nullptr) return;
  current().line = line;
  current().operation = operation;
  wait_as(State::at_barrier);
}

inline bool block_waits() {
  const auto begin = machine.threads.begin(), end = begin + machine.count;
  return std::all_of(begin, end, [](const Thread& thread) { return thread.state == State::at_barrier; });
}

// All threads have arrived; at one and the same barrier, or it is no barrier.
inline bool pass_barrier() {
  const Thread& first = machine.threads[0];
  for (unsigned i = 0; i < machine.count; ++i) {
    Thread& thread = machine.threads[i];
    if (thread.line != first.line) {
      const long others = std::count_if(machine.threads.begin(), machine.threads.begin() + machine.count,
                                        [&](const Thread& other) { return other.line == thread.line; });
      fail("%s of %s: threads of one block wait at different barriers, %ld of %u at line %d and others at line %d. Every "
           "thread has to pass the same %s().",
           block_name(machine.block).c_str(), machine.kernel, others, machine.count, thread.line, first.line,
           thread.operation);
      return false;
    }
    thread.shown = thread.given;
  }
  for (unsigned i = 0; i < machine.count; ++i) machine.threads[i].state = State::ready;
  return true;
}

// Whether all lanes that this one waits for wait with it; then they see what each other gave and go on.
inline bool pass_warp(unsigned first) {
  bool passed = false;
  const unsigned lanes = std::min(warp_size, machine.count - first);
  Thread* warp = &machine.threads[first];
  for (unsigned i = 0; i < lanes; ++i) {
    if (warp[i].state != State::at_warp) continue;
    bool complete = true;
    for (unsigned j = 0; j < lanes; ++j) {
      const bool wanted = warp[i].mask >> j & 1;
      complete &= !wanted || (warp[j].state == State::at_warp && warp[j].mask == warp[i].mask &&
                              warp[j].line == warp[i].line && warp[j].operation == warp[i].operation);
    }
    if (!complete) continue;
    const unsigned mask = warp[i].mask;
    for (unsigned j = 0; j < lanes; ++j) {
      if ((mask >> j & 1) == 0) continue;
      warp[j].shown = warp[j].given;
      warp[j].state = State::ready;
    }
    passed = true;
  }
  return passed;
}

inline bool pass_warps() {
  bool passed = false;
  for (unsigned first = 0; first < machine.count; first += warp_size) passed |= pass_warp(first);
  return passed;
}

inline void explain_stuck_block(const Thread& waits) {
  const auto begin = machine.threads.begin(), end = begin + machine.count;
  const long arrived = std::count_if(begin, end, [&](const Thread& thread) {
    return thread.state == State::at_barrier && thread.line == waits.line;
  });
  fail("%s of %s: %ld of %u threads never reach the %s() at line %d. It has to be passed by every thread of the block, "
       "also by those that have nothing to do: no early return before it, no branch around it.",
       block_name(machine.block).c_str(), machine.kernel, machine.count - arrived, machine.count, waits.operation,
       waits.line);
}

inline void explain_stuck_warp(const Thread& waits) {
  const unsigned first = waits.linear / warp_size * warp_size;
  unsigned missing = 0;
  for (unsigned i = 0; i < warp_size; ++i) {
    const Thread* other = first + i < machine.count ? &machine.threads[first + i] : nullptr;
    const bool there = other != nullptr && other->state == State::at_warp && other->line == waits.line;
    if ((waits.mask >> i & 1) && !there) missing |= 1u << i;
  }
  fail("%s of %s, warp %u: %s at line %d waits for lanes 0x%08x (mask 0x%08x), which never arrive there.",
       block_name(machine.block).c_str(), machine.kernel, first / warp_size, waits.operation, waits.line, missing,
       waits.mask);
}

// Nobody can go on and not all are done: say why.
inline void explain_stuck() {
  for (unsigned i = 0; i < machine.count; ++i) {
    if (machine.threads[i].state == State::at_warp) return explain_stuck_warp(machine.threads[i]);
  }
  for (unsigned i = 0; i < machine.count; ++i) {
    if (machine.threads[i].state == State::at_barrier) return explain_stuck_block(machine.threads[i]);
  }
}

// --- running a block -------------------------------------------------------------------------------------------------

inline void start_threads() {
  const dim3 dim = machine.block_dim;
  for (unsigned i = 0; i < machine.count; ++i) {
    Thread& thread = machine.threads[i];
    thread.index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
    thread.linear = i;
    thread.state = State::ready;
    thread.context.stack_pointer = prepared(thread.stack, enter_thread);
    thread.context.stack_bottom = thread.stack;
    thread.context.stack_size = stack_bytes;
    thread.context.asan_state = nullptr;
  }
}

inline bool resume_ready(const std::vector<unsigned>& turns) {
  bool ran = false;
  for (const unsigned i : turns) {
    if (machine.threads[i].state != State::ready) continue;
    machine.current = &machine.threads[i];
    switch_to(machine.scheduler, machine.threads[i].context);
    machine.current = nullptr;
    ran = true;
    if (!machine.trouble.empty()) return false;
  }
  return ran;
}

inline bool all_done() {
  const auto begin = machine.threads.begin(), end = begin + machine.count;
  return std::all_of(begin, end, [](const Thread& thread) { return thread.state == State::done; });
}

// Run the block to its end; false if it went wrong.
inline bool run_block(std::vector<unsigned>& turns) {
  ++machine.block_number;
  machine.static_shared_bytes = 0;
  std::fill(machine.dynamic_shared.begin(), machine.dynamic_shared.end(), poison);
  start_threads();
  while (true) {
    if (machine.order == Order::shuffled) std::shuffle(turns.begin(), turns.end(), machine.shuffle);
    const bool ran = resume_ready(turns);
    if (!machine.trouble.empty()) return false;
    if (pass_warps()) continue;
    if (all_done()) return true;
    if (block_waits()) {
      if (!pass_barrier()) return false;
    } else if (!ran) {
      explain_stuck();
      return false;
    }
  }
}

inline bool run_grid() {
  std::vector<unsigned> turns(machine.count);
  for (unsigned i = 0; i < machine.count; ++i) {
    turns[i] = machine.order == Order::reverse ? machine.count - 1 - i : i;
  }
  const dim3 grid = machine.grid_dim;
  for (machine.block.z = 0; machine.block.z < grid.z; ++machine.block.z) {
    for (machine.block.y = 0; machine.block.y < grid.y; ++machine.block.y) {
      for (machine.block.x = 0; machine.block.x < grid.x; ++machine.block.x) {
        if (!run_block(turns)) return false;
      }
    }
  }
  return true;
}

// --- launching -------------------------------------------------------------------------------------------------------

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  Configuration(dim3 grid_, dim3 block_, size_t shared_bytes_ = 0, const void* /*stream*/ = nullptr)
      : grid(grid_), block(block_), shared_bytes(shared_bytes_) {}
};

inline bool check(const Configuration& c, const char* kernel, int line) {
  const std::uint64_t threads = std::uint64_t{c.block.x} * c.block.y * c.block.z;
  const char* wrong = nullptr;
  if (threads == 0 || std::uint64_t{c.grid.x} * c.grid.y * c.grid.z == 0) wrong = "grid and block need at least one of each";
  if (threads > max_block_threads) wrong = "a block has at most 1024 threads";
  if (c.block.z > 64) wrong = "a block is at most 64 deep in z";
  if (c.grid.x > 2147483647u || c.grid.y > 65535 || c.grid.z > 65535) wrong = "a grid is at most 2147483647 x 65535 x 65535";
  if (c.shared_bytes > machine.dynamic_limit) {
    wrong = c.shared_bytes > max_shared_bytes
                ? "a block has at most 227 KiB of shared memory"
                : "more than 48 KiB of shared memory have to be asked for with cudaFuncSetAttribute";
  }
  if (wrong != nullptr) {
    fail("line %d: %s<<<(%u,%u,%u), (%u,%u,%u), %zu>>> cannot be launched: %s.", line, kernel, c.grid.x, c.grid.y, c.grid.z,
         c.block.x, c.block.y, c.block.z, c.shared_bytes, wrong);
  }
  return wrong == nullptr;
}

inline void make_room(unsigned threads, size_t shared_bytes) {
  const size_t before = machine.threads.size();
  if (before < threads) machine.threads.resize(threads);
  for (size_t i = before; i < machine.threads.size(); ++i) machine.threads[i].stack = new_stack();
  machine.count = threads;
  machine.dynamic_shared.assign(shared_bytes + 16, poison);
}

// kernel<<<configuration>>>(arguments…). After something went wrong nothing is launched any more, as on a GPU.
template <class Kernel, class... Arguments>
void launch(const char* name, int line, const Configuration& configuration, Kernel kernel, Arguments... arguments) {
  if (!machine.trouble.empty() || !check(configuration, name, line)) return;
  if (machine.current != nullptr) {
    fail("line %d: a kernel launches a kernel; dynamic parallelism is not emulated.", line);
    stop_thread();
  }
  auto call = [&] { kernel(arguments...); };
  machine.body = [](void* argument) { (*static_cast<decltype(call)*>(argument))(); };
  machine.arguments = &call;
  machine.kernel = name;
  machine.grid_dim = configuration.grid;
  machine.block_dim = configuration.block;
  make_room(configuration.block.x * configuration.block.y * configuration.block.z, configuration.shared_bytes);
  run_grid();
}

// --- shared memory ---------------------------------------------------------------------------------------------------

// A `__shared__` variable comes into being with its block: the first thread that meets it fills it with poison.
struct SharedOwner {
  std::uint64_t block_number = 0;
};

template <class T>
void shared_begins(T& variable, SharedOwner& owner, const char* name, int line) {
  static_assert(std::is_trivially_copyable_v<T>, "a __shared__ variable is plain data");
  if (owner.block_number == machine.block_number) return;
  owner.block_number = machine.block_number;
  machine.static_shared_bytes += sizeof(T);
  if (machine.static_shared_bytes > max_static_shared_bytes) {
    fail("line %d: with %s, %s has %zu bytes of __shared__ variables; at most 49152 are allowed, more only as extern __shared__.",
         line, name, machine.kernel, machine.static_shared_bytes);
    stop_thread();
  }
  std::memset(static_cast<void*>(&variable), poison, sizeof(T));
}

inline void* dynamic_shared_memory() {
  const auto address = reinterpret_cast<std::uintptr_t>(machine.dynamic_shared.data());
  return reinterpret_cast<void*>((address + 15) & ~std::uintptr_t{15});
}

// `extern __shared__ T name[];` outside of functions.
template <class T>
struct DynamicShared {
  operator T*() const { return static_cast<T*>(dynamic_shared_memory()); }
  T& operator[](size_t i) const { return static_cast<T*>(dynamic_shared_memory())[i]; }
  T* operator+(size_t i) const { return static_cast<T*>(dynamic_shared_memory()) + i; }
};

}  // namespace cuda_emulator

// --- what the harness calls ------------------------------------------------------------------------------------------

extern "C" {
// In which order the threads of a block take turns from now on: 0 forward, 1 reverse, 2 shuffled by `seed`.
__attribute__((used, visibility("default"))) inline void cuda_emulator_set_order(int order, unsigned seed) {
  cuda_emulator::machine.order = static_cast<cuda_emulator::Order>(order);
  cuda_emulator::machine.shuffle.seed(seed);
}
// What went wrong since the last call of `cuda_emulator_forget`, or an empty text.
__attribute__((used, visibility("default"))) inline const char* cuda_emulator_trouble() {
  return cuda_emulator::machine.trouble.c_str();
}
__attribute__((used, visibility("default"))) inline void cuda_emulator_forget() {
  cuda_emulator::machine.trouble.clear();
}
}
