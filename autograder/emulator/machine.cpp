// The machine behind the headers: fibers, blocks, barriers, the launches of one call, and who may touch which memory.
// Compiled once, without the checks that a student's file is compiled with, and linked to every library.
#include <cxxabi.h>
#include <dlfcn.h>
#include <time.h>
#include <unwind.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "cuda_emulator/block.h"
#include "cuda_emulator/counters.h"
#include "cuda_emulator/memory.h"
#include "cuda_emulator/runtime.h"

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

Machine machine;
// A declaration in a file may ask for as much alignment.
alignas(1024) unsigned char dynamic_shared[shared_margin_bytes + max_shared_bytes + shared_margin_bytes];

// --- what went wrong -------------------------------------------------------------------------------------------------

void fail(const char* kind, int line, const char* format, ...) {
  if (machine.failed) return;
  char text[1200];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  machine.failed = true;
  machine.trouble = {kind, text, line};
}

std::string at(uint3 where) {
  char text[64];
  std::snprintf(text, sizeof text, "(%u,%u,%u)", where.x, where.y, where.z);
  return text;
}

std::string block_name(uint3 where) { return "block " + at(where); }
std::string here_in_grid() { return block_name(machine.block) + " of " + machine.kernel; }
std::string this_thread() { return "thread " + at(current().index) + " of " + here_in_grid(); }

// --- taking turns ----------------------------------------------------------------------------------------------------

void wait_as(State state) {
  Thread& self = current();
  self.state = state;
  switch_to(self.context, machine.scheduler);
}

void stop_thread() {
  if (machine.current != nullptr) {
    current().state = State::done;
    switch_to(current().context, machine.scheduler);
  } else if (machine.in_host) {
    Context left;
    switch_to(left, machine.host);
  }
  std::fprintf(stderr, "%s\n", machine.trouble.text.c_str());
  std::abort();  // Outside of a call of the harness there is nowhere to go.
}

// As translate.py says it of what it finds.
void gpu_only(const char* what, int line, std::uintptr_t code) {
  fail("GpuOnly", line,
       "%s cannot run on the CPU lane. It can on a GPU lane: put it between #ifndef CUDA_EMULATOR and #else, and what runs here "
       "before #endif.",
       what);
  if (machine.trouble.code == 0) machine.trouble.code = code;
  stop_thread();
}

void enter_thread() {
  machine.body(machine.arguments);
  stop_thread();
}

// --- barriers --------------------------------------------------------------------------------------------------------

void barrier(int line, const char* operation) {
  if (machine.current == nullptr) return;
  current().line = line;
  current().operation = operation;
  wait_as(State::at_barrier);
}

// Whether every thread that has not ended waits at a barrier, and one does.
bool block_waits() {
  bool one_waits = false;
  for (const Thread* thread = machine.threads; thread != machine.threads + machine.count; ++thread) {
    one_waits |= thread->state == State::at_barrier;
    if (thread->state != State::at_barrier && thread->state != State::done) return false;
  }
  return one_waits;
}

// Say once that threads have ended before a barrier: a result without their part is wrong, and nothing else shows why.
void note_ended_threads(const Thread& waits) {
  static bool noted = false;
  Thread* const end = machine.threads + machine.count;
  const long ended = std::count_if(machine.threads, end, [](const Thread& thread) { return thread.state == State::done; });
  if (noted || ended == 0) return;
  noted = true;
  std::fprintf(stderr,
               "Note: %s: %ld of %u threads returned before the %s() at line %d. The others go on without them, as on a GPU "
               "since Volta; what they should have done after it is not done.\n",
               here_in_grid().c_str(), ended, machine.count, waits.operation, waits.line);
}

// All threads that have not ended have arrived; at one and the same barrier, or it is no barrier.
bool pass_barrier() {
  Thread* const end = machine.threads + machine.count;
  const auto waits = [](const Thread& thread) { return thread.state == State::at_barrier; };
  const Thread& first = *std::find_if(machine.threads, end, waits);
  for (Thread* thread = machine.threads; thread != end; ++thread) {
    if (waits(*thread) && thread->line != first.line) {
      const long others = std::count_if(machine.threads, end, [&](const Thread& one) { return one.line == thread->line; });
      fail("BarrierError", thread->line,
           "%s: threads of one block wait at different barriers, %ld of %u at line %d and others at line %d. Every thread "
           "has to pass the same %s().",
           here_in_grid().c_str(), others, machine.count, thread->line, first.line, thread->operation);
      return false;
    }
  }
  note_ended_threads(first);
  machine.agreed =
      static_cast<int>(std::count_if(machine.threads, end, [&](const Thread& one) { return waits(one) && one.says; }));
  for (Thread* thread = machine.threads; thread != end; ++thread) {
    if (waits(*thread)) thread->state = State::ready;
  }
  races::block_waited();
  counters::together();
  return true;
}

// Whether all lanes that this one waits for wait with it; then they see what each other gave and go on.
bool pass_warp(unsigned first) {
  bool passed = false;
  const unsigned lanes = std::min(warp_size, machine.count - first);
  Thread* warp = &machine.threads[first];
  for (unsigned i = 0; i < lanes; ++i) {
    if (warp[i].state != State::at_warp) continue;
    bool complete = true;
    for (unsigned j = 0; j < warp_size; ++j) {
      const bool wanted = warp[i].mask >> j & 1;
      complete &= !wanted || (j < lanes && warp[j].state == State::at_warp && warp[j].mask == warp[i].mask &&
                              warp[j].line == warp[i].line && warp[j].operation == warp[i].operation);
    }
    if (!complete) continue;
    const unsigned mask = warp[i].mask;
    for (unsigned j = 0; j < lanes; ++j) {
      if ((mask >> j & 1) == 0) continue;
      warp[j].shown = warp[j].given;
      warp[j].state = State::ready;
      races::warp_waited(first + j);
    }
    passed = true;
  }
  return passed;
}

// Lanes that ask who runs with them: those that have come to the same line, when nobody of the warp can go on without them.
bool gather_warp(unsigned first) {
  const unsigned lanes = std::min(warp_size, machine.count - first);
  Thread* const warp = &machine.threads[first];
  Thread* const one = std::find_if(warp, warp + lanes, [](const Thread& thread) { return thread.state == State::gathering; });
  if (one == warp + lanes) return false;
  const int line = one->line;
  unsigned together = 0;
  for (unsigned i = 0; i < lanes; ++i) together |= unsigned{warp[i].state == State::gathering && warp[i].line == line} << i;
  for (unsigned i = 0; i < lanes; ++i) {
    if ((together >> i & 1) == 0) continue;
    warp[i].mask = together;
    warp[i].state = State::ready;
  }
  return true;
}

void explain_stuck_warp(const Thread& waits) {
  const unsigned first = waits.linear / warp_size * warp_size;
  unsigned missing = 0;
  for (unsigned i = 0; i < warp_size; ++i) {
    const Thread* other = first + i < machine.count ? &machine.threads[first + i] : nullptr;
    const bool there = other != nullptr && other->state == State::at_warp && other->line == waits.line;
    if ((waits.mask >> i & 1) && !there) missing |= 1u << i;
  }
  fail("WarpError", waits.line, "%s, warp %u: %s at line %d waits for lanes 0x%08x (mask 0x%08x), which never arrive there.",
       here_in_grid().c_str(), first / warp_size, waits.operation, waits.line, missing, waits.mask);
}

// Nobody can go on and not all are done: lanes wait for others of their warp.
void explain_stuck() {
  for (unsigned i = 0; i < machine.count; ++i) {
    if (machine.threads[i].state == State::at_warp) return explain_stuck_warp(machine.threads[i]);
  }
}

// --- running a block -------------------------------------------------------------------------------------------------

// Turns that threads of one block may give away while none of them passes a barrier, ends or changes memory: then they
// wait for another block, which will not come.
constexpr std::uint64_t most_idle_turns = 100'000;

// --- copies that a thread does not wait for ---------------------------------------------------------------------------

struct Copy {
  void* to;
  std::vector<unsigned char> bytes;
};
struct Copies {
  std::vector<Copy> open;                 // Since the last batch ended.
  std::vector<std::vector<Copy>> batches;  // In order.
  void clear() { open.clear(), batches.clear(); }
};
Copies copies[max_block_threads];

// The caller has looked at both ends, and left poison at the one that is written.
void copy_later(void* to, const void* from, size_t bytes, size_t zeros) {
  Copies& mine = copies[current().linear];
  const auto* const begin = static_cast<const unsigned char*>(from);
  std::vector<unsigned char> content(begin, begin + (bytes - zeros));
  content.resize(bytes);
  mine.open.push_back({to, std::move(content)});
}

void commit_copies() {
  Copies& mine = copies[current().linear];
  mine.batches.push_back(std::move(mine.open));
  mine.open.clear();
}

void wait_for_copies(unsigned left) {
  std::vector<std::vector<Copy>>& batches = copies[current().linear].batches;
  const size_t ended = batches.size() - std::min<size_t>(left, batches.size());
  for (size_t i = 0; i < ended; ++i) {
    for (const Copy& copy : batches[i]) std::memcpy(copy.to, copy.bytes.data(), copy.bytes.size());
  }
  batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(ended));
  machine.wrote |= ended > 0;
}

void start_threads() {
  const dim3 dim = machine.block_dim;
  for (unsigned i = 0; i < machine.count; ++i) {
    Thread& thread = machine.threads[i];
    thread.index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
    thread.linear = i;
    thread.state = State::ready;
    copies[i].clear();
    thread.context.stack_pointer = prepared(thread.stack, stack_bytes, enter_thread);
  }
}

// The order in which warps, and the lanes of each, take turns.
struct Turns {
  std::vector<unsigned> warps, lanes;

  Turns() : warps((machine.count + warp_size - 1) / warp_size), lanes(warp_size) {
    std::iota(warps.begin(), warps.end(), 0u);
    std::iota(lanes.begin(), lanes.end(), 0u);
    if (machine.order != Order::reverse) return;
    std::reverse(warps.begin(), warps.end());
    std::reverse(lanes.begin(), lanes.end());
  }

  void next_round() {
    if (machine.order != Order::shuffled) return;
    std::shuffle(warps.begin(), warps.end(), machine.shuffle);
    std::shuffle(lanes.begin(), lanes.end(), machine.shuffle);
  }
};

// What a round of turns came to.
struct Round {
  bool failed = false, progress = false;
  std::uint64_t turns = 0;
};

// Let every lane of a warp that can have its turn, and again as long as the warp's own barriers let it: no warp waits for
// another one without a barrier, so here the first has run as far ahead as it can when the last begins.
void run_warp(unsigned warp, const std::vector<unsigned>& lanes, Round& round) {
  const unsigned first = warp * warp_size;
  do {
    for (const unsigned lane : lanes) {
      if (first + lane >= machine.count) continue;
      Thread& thread = machine.threads[first + lane];
      if (thread.state != State::ready) continue;
      machine.current = &thread;
      switch_to(machine.scheduler, thread.context);
      machine.current = nullptr;
      races::stopped(thread);
      round.failed = machine.failed;
      if (round.failed) return;
      round.progress |= thread.state == State::done;
      ++round.turns;
    }
  } while ((pass_warp(first) || gather_warp(first)) && (round.progress = true));
}

Round run_warps(Turns& turns) {
  Round round;
  turns.next_round();
  for (const unsigned warp : turns.warps) {
    run_warp(warp, turns.lanes, round);
    if (round.failed) break;
  }
  round.progress |= machine.wrote;
  machine.wrote = false;
  return round;
}

bool all_done() {
  return std::all_of(machine.threads, machine.threads + machine.count,
                     [](const Thread& thread) { return thread.state == State::done; });
}

bool any_ready() {
  return std::any_of(machine.threads, machine.threads + machine.count,
                     [](const Thread& thread) { return thread.state == State::ready; });
}

// Run the block to its end; false if it went wrong.
bool run_block(Turns& turns) {
  ++machine.block_number;
  machine.static_shared_bytes = 0;
  std::memset(dynamic_shared + shared_margin_bytes, poison, machine.dynamic_bytes);
  races::block_begins();
  start_threads();
  std::uint64_t idle_turns = 0;
  while (true) {
    const Round round = run_warps(turns);
    if (round.failed) return false;
    if (all_done()) return counters::together(), true;
    idle_turns = round.progress ? 0 : idle_turns + round.turns;
    if (block_waits()) {
      if (!pass_barrier()) return false;
    } else if (!any_ready()) {
      explain_stuck();
      return false;
    }
    if (idle_turns > most_idle_turns) {
      fail("WaitsForAnotherBlock", 0,
           "%s: its threads wait for something that no thread of this block does. On the CPU lane blocks run one after "
           "another, in an order that changes, so a block cannot wait for another one. On a GPU lane it can.",
           here_in_grid().c_str());
      return false;
    }
  }
}

bool run_blocks(Turns& turns) {
  const bool reverse = machine.order == Order::reverse;
  const dim3 grid = machine.grid_dim;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t number = reverse ? blocks - 1 - i : i;
    machine.block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                     static_cast<unsigned>(number / grid.x / grid.y)};
    if (!run_block(turns)) return false;
  }
  return true;
}

bool run_grid() {
  Turns turns;
  races::launch_begins();
  counters::launch_begins();
  const bool ran = run_blocks(turns);
  races::launch_ends();
  return ran && !machine.failed;
}

// --- launching -------------------------------------------------------------------------------------------------------

// What each kernel asked for, by its address. In a function, as a file may ask while it is loaded.
std::map<const void*, size_t>& shared_limits() {
  static std::map<const void*, size_t> limits;
  return limits;
}

void may_share(const void* kernel, size_t bytes) { shared_limits()[kernel] = std::max(bytes, max_static_shared_bytes); }

size_t shared_limit_of(const void* kernel) {
  const auto found = shared_limits().find(kernel);
  return found == shared_limits().end() ? max_static_shared_bytes : found->second;
}

size_t largest_shared_limit() {
  size_t largest = max_static_shared_bytes;
  for (const auto& [kernel, bytes] : shared_limits()) largest = std::max(largest, bytes);
  return largest;
}

int attribute_of_the_device(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return max_block_threads;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return max_static_shared_bytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return max_shared_bytes;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return max_shared_bytes + 1024;
    case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
    case cudaDevAttrTotalConstantMemory: return constant_bytes;
    case cudaDevAttrWarpSize: return warp_size;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return registers;
    case cudaDevAttrMultiProcessorCount: return multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return max_multiprocessor_threads;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return max_multiprocessor_blocks;
    case cudaDevAttrComputeCapabilityMajor: return 9;
    case cudaDevAttrL2CacheSize: return 50 << 20;
    case cudaDevAttrGlobalMemoryBusWidth: return 5120;
    case cudaDevAttrClockRate: return 1'980'000;
    case cudaDevAttrMemoryClockRate: return 2'619'000;
    case cudaDevAttrMaxPitch: return 2147483647;
    case cudaDevAttrTextureAlignment:
    case cudaDevAttrTexturePitchAlignment: return 512;
    case cudaDevAttrAsyncEngineCount:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrMemoryPoolsSupported: return 1;
    default: return 0;
  }
}

double now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

void refuse_launch(cudaError_t error, const std::string& why) {
  const dim3 grid = machine.grid_dim, block = machine.block_dim;
  fail("LaunchError", machine.launch_line, "%s<<<(%u,%u,%u), (%u,%u,%u), %zu>>> cannot be launched: %s.", machine.kernel, grid.x,
       grid.y, grid.z, block.x, block.y, block.z, machine.dynamic_bytes, why.c_str());
  machine.trouble.error = error;
}

void check_sizes() {
  const dim3 grid = machine.grid_dim, block = machine.block_dim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const char* wrong = nullptr;
  if (threads == 0 || std::uint64_t{grid.x} * grid.y * grid.z == 0) wrong = "grid and block need at least one of each";
  if (threads > max_block_threads) wrong = "a block has at most 1024 threads";
  if (block.z > 64) wrong = "a block is at most 64 deep in z";
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) wrong = "a grid is at most 2147483647 x 65535 x 65535";
  if (wrong != nullptr) refuse_launch(cudaErrorInvalidValue, wrong);
}

void check_dynamic_shared() {
  if (machine.dynamic_bytes <= machine.dynamic_limit) return;
  refuse_launch(cudaErrorInvalidValue,
                machine.dynamic_bytes > max_shared_bytes
                    ? "a block has at most 227 KiB of shared memory"
                    : "more than 48 KiB of shared memory have to be asked for with cudaFuncSetAttribute: all of them, for this kernel");
}

void check_launch_bounds(long long most_threads) {
  if (most_threads <= 0 || machine.count <= most_threads) return;
  refuse_launch(cudaErrorInvalidValue, "its __launch_bounds__ allow " + std::to_string(most_threads) + " threads in a block");
}

// Which kernel was launched is known only here: a launch may leave a template's arguments to the compiler.
void kernel_begins(long long most_threads, long long, long long) {
  if (machine.current == nullptr || machine.kernel_began) return;
  if (machine.asking) {
    machine.asked_threads = most_threads;
    stop_thread();
  }
  machine.kernel_began = true;
  machine.dynamic_limit = shared_limit_of(_Unwind_FindEnclosingFunction(__builtin_return_address(0)));
  check_launch_bounds(most_threads);
  if (!machine.failed) check_dynamic_shared();
  if (machine.failed) stop_thread();
}

// Run the kernel as far as its first call, which says it.
int most_threads_of(const void* kernel) {
  Thread& thread = machine.threads[0];
  if (thread.stack == nullptr) thread.stack = new_stack(stack_bytes);
  thread.context.stack_pointer = prepared(thread.stack, stack_bytes, enter_thread);
  machine.body = [](void* code) { reinterpret_cast<void (*)()>(code)(); };
  machine.arguments = const_cast<void*>(kernel);
  machine.asking = true, machine.kernel_began = false, machine.asked_threads = 0;
  machine.current = &thread;
  switch_to(machine.scheduler, thread.context);
  machine.current = nullptr;
  machine.asking = false;
  const long long most = max_block_threads;
  return static_cast<int>(machine.asked_threads > 0 ? std::min(machine.asked_threads, most) : most);
}

std::string name_of(const void* kernel) {
  Dl_info found{};
  if (dladdr(kernel, &found) == 0 || found.dli_sname == nullptr || found.dli_saddr != kernel) return "kernel";
  int status = 0;
  char* const whole = abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 ? whole : found.dli_sname;
  std::free(whole);
  name = name.substr(0, name.find_first_of("(<"));
  name = name.substr(name.rfind(' ') + 1);
  return name.empty() ? "kernel" : name;
}

void record(const char* kernel, dim3 grid) {
  for (unsigned i = 0; i < machine.launched_count; ++i) {
    Launched& known = machine.launched[i];
    const bool same = known.grid.x == grid.x && known.grid.y == grid.y && known.grid.z == grid.z;
    if (same && known.kernel == kernel) return void(++known.calls);
  }
  if (machine.launched_count < max_launches) machine.launched[machine.launched_count++] = {kernel, grid, 1};
}

void run_launch(const char* kernel, int line, const Configuration& configuration, void (*body)(void*), void* arguments) {
  if (machine.current != nullptr) {
    fail("LaunchError", line, "a kernel launches a kernel; dynamic parallelism is not emulated.");
    stop_thread();
  }
  if (machine.failed) return;
  machine.body = body;
  machine.arguments = arguments;
  machine.kernel = kernel;
  machine.launch_line = line;
  machine.kernel_began = false;
  machine.grid_dim = configuration.grid;
  machine.block_dim = configuration.block;
  machine.dynamic_bytes = configuration.shared_bytes;
  machine.dynamic_limit = largest_shared_limit();
  check_sizes();
  if (!machine.failed) check_dynamic_shared();
  if (machine.failed) return;
  record(kernel, configuration.grid);
  if (machine.ghost) return;
  machine.count = configuration.block.x * configuration.block.y * configuration.block.z;
  for (unsigned i = 0; i < machine.count; ++i) {
    if (machine.threads[i].stack == nullptr) machine.threads[i].stack = new_stack(stack_bytes);
  }
  run_grid();
}

extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[], _end[];  // The linker's: where this library lies.

std::uintptr_t image_begin() { return reinterpret_cast<std::uintptr_t>(__ehdr_start); }
size_t image_bytes() { return static_cast<size_t>(_end - __ehdr_start); }

// Of the file's own variables and shared memory.
races::Shadow& image_shadow() {
  static const std::shared_ptr<races::Shadow> shadow = [] {
    auto made = races::shadow_of(image_begin(), image_bytes());
    races::is_shared(*made, reinterpret_cast<std::uintptr_t>(dynamic_shared), shared_margin_bytes + max_shared_bytes);
    return made;
  }();
  return *shadow;
}

void shared_comes_into_being(void* variable, size_t bytes, SharedOwner& owner, const char* name, int line) {
  owner.block_number = machine.block_number;
  machine.static_shared_bytes += bytes;
  if (machine.static_shared_bytes > max_static_shared_bytes) {
    fail("LaunchError", line,
         "with %s, %s has %zu bytes of __shared__ variables; at most 49152 are allowed, more only as extern __shared__.",
         name, machine.kernel, machine.static_shared_bytes);
    stop_thread();
  }
  // What the launch brings stands beside them in the same memory.
  const size_t most = machine.dynamic_limit > max_static_shared_bytes ? max_shared_bytes : max_static_shared_bytes;
  if (machine.static_shared_bytes + machine.dynamic_bytes > most) {
    fail("LaunchError", line,
         "with %s, %s has %zu bytes of __shared__ variables beside the %zu that the launch asks for; a block has %zu%s.",
         name, machine.kernel, machine.static_shared_bytes, machine.dynamic_bytes, most,
         most == max_shared_bytes ? "" : ", more only after cudaFuncSetAttribute");
    machine.trouble.error = cudaErrorInvalidValue;
    stop_thread();
  }
  std::memset(variable, poison, bytes);
  counters::is_shared(reinterpret_cast<std::uintptr_t>(variable), bytes);
  if (races::watching()) races::is_shared(image_shadow(), reinterpret_cast<std::uintptr_t>(variable), bytes);
}

// --- memory ----------------------------------------------------------------------------------------------------------

namespace {

std::vector<Array> arrays;
size_t last_array = 0;  // Where the last access fell: most often the next one does too.

bool within(const Array& array, std::uintptr_t address, size_t bytes) {
  const size_t offset = address - array.begin;
  if (offset > array.bytes || bytes > array.bytes - offset) return false;
  return array.row_bytes == array.stride_bytes || offset % array.stride_bytes + bytes <= array.row_bytes;
}

bool in_any_array(std::uintptr_t address, size_t bytes) {
  if (last_array < arrays.size() && within(arrays[last_array], address, bytes)) return true;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (within(arrays[i], address, bytes)) return last_array = i, true;
  }
  return false;
}

// What kernels have from malloc and new: each piece's beginning and size. It stays from launch to launch.
std::map<std::uintptr_t, size_t> kernel_heap;
size_t kernel_heap_used = 0;

bool in_kernel_heap(std::uintptr_t address, size_t bytes) {
  const auto behind = kernel_heap.upper_bound(address);
  if (behind == kernel_heap.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  return address - begin <= size && bytes <= size - (address - begin);
}

// The array that lies closest, if it is closer than a mebibyte.
const Array* nearest(std::uintptr_t address) {
  const Array* best = nullptr;
  std::uintptr_t closest = 1 << 20;
  for (const Array& array : arrays) {
    const std::uintptr_t end = array.begin + array.bytes;
    const std::uintptr_t distance = address < array.begin ? array.begin - address : address >= end ? address - end : 0;
    if (distance < closest) closest = distance, best = &array;
  }
  return best;
}

// The piece of the kernels' heap that begins before it, if the address lies within a few of its elements.
const std::pair<const std::uintptr_t, size_t>* piece_before(std::uintptr_t address) {
  const auto behind = kernel_heap.upper_bound(address);
  if (behind == kernel_heap.begin()) return nullptr;
  const auto& piece = *std::prev(behind);
  return address - piece.first < piece.second + 64 ? &piece : nullptr;
}

std::string where(std::uintptr_t address) {
  const Array* array = nearest(address);
  char text[300];
  if (const auto* piece = piece_before(address)) {
    std::snprintf(text, sizeof text, "byte %zu of memory from malloc or new, which has %zu bytes",
                  size_t{address - piece->first}, piece->second);
    return text;
  }
  if (array == nullptr) {
    std::snprintf(text, sizeof text, address < 65536 ? "through a null pointer" : "at an address that is no device memory");
    return text;
  }
  const bool named = !array->name.empty();
  const long long offset = static_cast<long long>(address - array->begin);
  const long long item = offset >= 0 || offset % static_cast<long long>(array->item_bytes) == 0
                             ? offset / static_cast<long long>(array->item_bytes)
                             : offset / static_cast<long long>(array->item_bytes) - 1;
  const char* unit = named ? "element" : "byte";
  const char* name = named ? array->name.c_str() : "memory from cudaMalloc";
  const unsigned long long count = array->bytes / array->item_bytes;
  if (within(*array, address, 1)) {
    std::snprintf(text, sizeof text, "%s %lld of %s", unit, item, name);
  } else if (offset >= 0 && static_cast<size_t>(offset) < array->bytes) {
    std::snprintf(text, sizeof text, "%s %lld of %s, which is not in one of its rows", unit, item, name);
  } else if (offset < 0) {
    std::snprintf(text, sizeof text, "%s %lld of %s, before its first one", unit, item, name);
  } else if (count == 1) {
    std::snprintf(text, sizeof text, "%s %lld of %s, which has only 1 %s (index 0)", unit, item, name, unit);
  } else {
    std::snprintf(text, sizeof text, "%s %lld of %s, which has %llu %ss (0 to %llu)", unit, item, name, count, unit, count - 1);
  }
  return text;
}

[[noreturn]] void illegal(const char* kind, const std::string& text, int line, std::uintptr_t code) {
  fail(kind, line, "%s", text.c_str());
  if (machine.trouble.code == 0) machine.trouble.code = code;
  stop_thread();
}

// A loop that reads one address again and again waits for another thread: let that one run.
void lets_others_run(std::uintptr_t address, std::uintptr_t code) {
  static std::uintptr_t last_address = 0, last_code = 0;
  static unsigned times = 0;
  if (address != last_address || code != last_code) {
    last_address = address, last_code = code, times = 0;
  } else if (++times == 1024) {
    times = 0;
    wait_as(State::ready);
  }
}

[[noreturn]] void refuse_counters(std::uintptr_t code) {
  illegal("IllegalAccess", "an illegal memory access: the code reaches for what the emulator counts.", 0, code);
}

void touch_on_host(std::uintptr_t address, bool writes, std::uintptr_t code) {
  if (machine.in_host && counters::owns(address)) refuse_counters(code);
  if (arrays.empty() || !machine.in_host || !is_device_only(reinterpret_cast<void*>(address))) return;
  const std::string text = std::string("an illegal memory access: the host's code ") + (writes ? "writes " : "reads ") +
                           where(address) + ": that is device memory. Work on it in a kernel.";
  illegal("IllegalAccess", text, 0, code);
}

void touch_dynamic_shared(std::uintptr_t address, size_t bytes, bool writes, std::uintptr_t code) {
  const size_t offset = address - reinterpret_cast<std::uintptr_t>(dynamic_shared);
  if (offset >= sizeof dynamic_shared) return;
  const long long begin = static_cast<long long>(offset) - static_cast<long long>(shared_margin_bytes);
  if (begin >= 0 && begin + bytes <= machine.dynamic_bytes) return;
  char text[300];
  std::snprintf(text, sizeof text, "an illegal memory access: %s %s byte %lld of dynamic shared memory; its launch gave it %zu bytes.",
                this_thread().c_str(), writes ? "writes" : "reads", begin, machine.dynamic_bytes);
  illegal("IllegalAccess", text, 0, code);
}

// After `in_any_array` has found the array that it is in.
void look_for_races(std::uintptr_t address, size_t bytes, bool writes, std::uintptr_t code) {
  races::settle();
  if (machine.failed) stop_thread();
  if (address - image_begin() < image_bytes()) {
    races::touch(image_shadow(), address, bytes, writes, code);
  } else if (last_array < arrays.size() && within(arrays[last_array], address, bytes)) {
    Array& array = arrays[last_array];
    if (array.shadow == nullptr) array.shadow = races::shadow_of(array.begin, array.bytes);
    races::touch(*array.shadow, address, bytes, writes, code);
  }
}

void look_at(std::uintptr_t address, size_t bytes, bool writes, std::uintptr_t code) {
  if (machine.current == nullptr) return touch_on_host(address, writes, code);
  if (address - reinterpret_cast<std::uintptr_t>(&machine) < sizeof machine) return;
  const std::uintptr_t stack = reinterpret_cast<std::uintptr_t>(machine.current->stack);
  if (address - stack < stack_bytes) return;
  if (address - image_begin() < image_bytes()) {
    if (counters::owns(address)) refuse_counters(code);
    touch_dynamic_shared(address, bytes, writes, code);
  } else if (!in_any_array(address, bytes) && !in_kernel_heap(address, bytes)) {
    const std::string text = "an illegal memory access: " + this_thread() + (writes ? " writes " : " reads ") + where(address) + ".";
    illegal("IllegalAccess", text, 0, code);
  }
  if (races::watching()) look_for_races(address, bytes, writes, code);
  if (counters::counting()) counters::touch(address, bytes, writes, code);
  machine.wrote |= writes;
}

void touch(std::uintptr_t address, size_t bytes, bool writes, std::uintptr_t code) {
  look_at(address, bytes, writes, code);
  // Atomics give their turn away by themselves.
  if (!writes && machine.current != nullptr && !races::is_atomic()) lets_others_run(address, code);
}

}  // namespace

void exists_from_now(const Array& array) { arrays.push_back(array); }

void exists_no_more(std::uintptr_t begin) {
  arrays.erase(std::remove_if(arrays.begin(), arrays.end(), [&](const Array& array) { return array.begin == begin; }),
               arrays.end());
}

std::string place_of(std::uintptr_t address) {
  return address - image_begin() < image_bytes() ? "shared memory or a variable of the file" : where(address);
}

bool is_device_memory(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return std::any_of(arrays.begin(), arrays.end(),
                     [&](const Array& array) { return number - array.begin < array.bytes; });
}

bool is_device_only(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return std::any_of(arrays.begin(), arrays.end(),
                     [&](const Array& array) { return !array.host_too && number - array.begin < array.bytes; });
}

void notice_of_direction(const void* address, const char* to_or_from, int line) {
  static std::vector<int> told;
  if (!is_device_only(address) || std::count(told.begin(), told.end(), line) > 0) return;
  told.push_back(line);
  std::fprintf(stderr,
               "notice: the cudaMemcpy at line %d copies %s device memory and says that it is the host's. What comes of it on a GPU "
               "is not defined: the launcher's pointers are on the device already (cudaMemcpyDeviceToDevice).\n",
               line, to_or_from);
}

size_t& kernel_heap_bytes() {
  static size_t bytes = 8 << 20;  // As CUDA's own.
  return bytes;
}

bool copies_device_memory(const void* address, size_t bytes, const char* operation) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  for (const Array& array : arrays) {
    const size_t offset = number - array.begin;
    if (offset <= array.bytes && bytes <= array.bytes - offset) return counters::copied(bytes), true;
  }
  fail("IllegalAccess", 0, "an illegal memory access: %s of %zu bytes begins at %s, or goes beyond its end.", operation, bytes,
       where(number).c_str());
  return false;
}

}  // namespace cuda_emulator

// --- malloc and new, of kernels and of the host (build.py) --------------------------------------------------------------

#define CALLER (reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1)

extern "C" {
// A thread of a kernel gets a piece of the kernels' heap, or nothing where that is full.
void* cuda_emulator_malloc(size_t bytes) {
  using namespace cuda_emulator;
  if (machine.current == nullptr) return std::malloc(bytes);
  if (bytes > kernel_heap_bytes() - std::min(kernel_heap_used, kernel_heap_bytes())) return nullptr;
  void* const address = std::malloc(std::max<size_t>(bytes, 1));
  if (address == nullptr) return nullptr;
  std::memset(address, poison, bytes);
  kernel_heap.emplace(reinterpret_cast<std::uintptr_t>(address), bytes);
  kernel_heap_used += bytes;
  return address;
}

void cuda_emulator_free(void* address) {
  using namespace cuda_emulator;
  if (machine.current == nullptr || address == nullptr) return std::free(address);
  const auto found = kernel_heap.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == kernel_heap.end()) {
    illegal("IllegalAccess",
            "an illegal memory access: " + this_thread() + " frees what no kernel has from malloc or new, or frees it twice.", 0,
            CALLER);
  }
  kernel_heap_used -= found->second;
  kernel_heap.erase(found);
  std::free(address);
}

// By the names that compilers give to new and delete.
void* cuda_emulator__Znwm(size_t bytes) {
  return cuda_emulator::machine.current == nullptr ? operator new(bytes) : cuda_emulator_malloc(bytes);
}
void* cuda_emulator__Znam(size_t bytes) { return cuda_emulator__Znwm(bytes); }
void cuda_emulator__ZdlPv(void* address) { cuda_emulator_free(address); }
void cuda_emulator__ZdaPv(void* address) { cuda_emulator_free(address); }
void cuda_emulator__ZdlPvm(void* address, size_t) { cuda_emulator_free(address); }
void cuda_emulator__ZdaPvm(void* address, size_t) { cuda_emulator_free(address); }
}

// --- what the compiler calls -----------------------------------------------------------------------------------------

namespace cuda_emulator {

// How threads tell each other something without an atomic.
void touch_volatile(std::uintptr_t address, size_t bytes, bool writes, std::uintptr_t code) {
  races::atomic_begins();
  look_at(address, bytes, writes, code);
  races::atomic_ends();
  if (!writes && machine.current != nullptr) lets_others_run(address, code);
}

void will_read(const void* from, size_t bytes) { touch(reinterpret_cast<std::uintptr_t>(from), bytes, false, CALLER); }
void will_write(void* to, size_t bytes) { touch(reinterpret_cast<std::uintptr_t>(to), bytes, true, CALLER); }

}  // namespace cuda_emulator

#define ACCESS(name, function, bytes)                                                                                 \
  void __tsan_##name##read##bytes(std::uintptr_t address) { cuda_emulator::function(address, bytes, false, CALLER); } \
  void __tsan_##name##write##bytes(std::uintptr_t address) { cuda_emulator::function(address, bytes, true, CALLER); }
#define ACCESSES(bytes)                            \
  ACCESS(, touch, bytes)                           \
  ACCESS(unaligned_, touch, bytes)                 \
  ACCESS(volatile_, touch_volatile, bytes)         \
  ACCESS(unaligned_volatile_, touch_volatile, bytes)

// What C++ itself has as atomics: the host's code has them from its library.
#define CHANGE(bits, type, name, operation)                                                  \
  type __tsan_atomic##bits##_##name(volatile type* address, type value, int) {               \
    const auto number = reinterpret_cast<std::uintptr_t>(address);                           \
    cuda_emulator::touch_volatile(number, sizeof(type), true, CALLER);                       \
    return operation(address, value, __ATOMIC_SEQ_CST);                                      \
  }
#define COMPARE(bits, type, name)                                                                                    \
  int __tsan_atomic##bits##_##name(volatile type* address, type* expected, type value, int, int) {                   \
    cuda_emulator::touch_volatile(reinterpret_cast<std::uintptr_t>(address), sizeof(type), true, CALLER);            \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
  }
#define ATOMICS(bits, type)                                                                                          \
  type __tsan_atomic##bits##_load(const volatile type* address, int) {                                               \
    cuda_emulator::touch_volatile(reinterpret_cast<std::uintptr_t>(address), sizeof(type), false, CALLER);           \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                  \
  void __tsan_atomic##bits##_store(volatile type* address, type value, int) {                                        \
    cuda_emulator::touch_volatile(reinterpret_cast<std::uintptr_t>(address), sizeof(type), true, CALLER);            \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                              \
  }                                                                                                                  \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* address, type expected, type value, int, int) {     \
    cuda_emulator::touch_volatile(reinterpret_cast<std::uintptr_t>(address), sizeof(type), true, CALLER);            \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);               \
    return expected;                                                                                                 \
  }                                                                                                                  \
  COMPARE(bits, type, compare_exchange_strong)                                                                       \
  COMPARE(bits, type, compare_exchange_weak)                                                                         \
  CHANGE(bits, type, exchange, __atomic_exchange_n)                                                                  \
  CHANGE(bits, type, fetch_add, __atomic_fetch_add)                                                                  \
  CHANGE(bits, type, fetch_sub, __atomic_fetch_sub)                                                                  \
  CHANGE(bits, type, fetch_and, __atomic_fetch_and)                                                                  \
  CHANGE(bits, type, fetch_or, __atomic_fetch_or)                                                                    \
  CHANGE(bits, type, fetch_xor, __atomic_fetch_xor)                                                                  \
  CHANGE(bits, type, fetch_nand, __atomic_fetch_nand)

extern "C" {
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_read_range(std::uintptr_t address, size_t bytes) { cuda_emulator::touch(address, bytes, false, CALLER); }
void __tsan_write_range(std::uintptr_t address, size_t bytes) { cuda_emulator::touch(address, bytes, true, CALLER); }
void __tsan_vptr_update(std::uintptr_t address, void*) { cuda_emulator::touch(address, sizeof(void*), true, CALLER); }
void __tsan_vptr_read(std::uintptr_t address) { cuda_emulator::touch(address, sizeof(void*), false, CALLER); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
ATOMICS(8, std::uint8_t)
ATOMICS(16, std::uint16_t)
ATOMICS(32, std::uint32_t)
ATOMICS(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

struct SourcePlace {
  const char* file;
  std::uint32_t line, column;
};
struct TypeName {
  std::uint16_t kind, information;
  char text[1];
};
struct TypeMismatch {
  SourcePlace place;
  const TypeName* type;
  unsigned char log_alignment, access;
};
struct OutOfBounds {
  SourcePlace place;
  const TypeName *array, *index;
};

void __ubsan_handle_type_mismatch_v1(const TypeMismatch* what, std::uintptr_t address) {
  using namespace cuda_emulator;
  const unsigned alignment = 1u << what->log_alignment;
  if (machine.current == nullptr || address % alignment == 0) return;
  illegal("MisalignedAddress",
          "a misaligned address: " + this_thread() + " uses " + where(address) + " as " + what->type->text +
              ", which has to begin at a multiple of " + std::to_string(alignment) + " bytes.",
          static_cast<int>(what->place.line), CALLER);
}

void __ubsan_handle_out_of_bounds(const OutOfBounds* what, std::uintptr_t index) {
  using namespace cuda_emulator;
  const std::string who = machine.current == nullptr ? "the host's code" : this_thread();
  if (machine.current == nullptr && !machine.in_host) return;
  illegal("IllegalAccess",
          "an illegal memory access: " + who + " takes index " + std::to_string(static_cast<std::intptr_t>(index)) + " of " +
              what->array->text + ".",
          static_cast<int>(what->place.line), CALLER);
}

// What a failed `assert` of <cassert> calls.
[[noreturn]] void __assert_fail(const char* expression, const char*, unsigned line, const char*) noexcept {
  using namespace cuda_emulator;
  const std::string who = machine.current == nullptr ? "the host's code" : this_thread();
  fail("AssertionFailed", static_cast<int>(line), "assert(%s) does not hold in %s.", expression, who.c_str());
  stop_thread();
}

// --- what the harness calls ------------------------------------------------------------------------------------------

// In which order blocks and the threads of a block take turns from now on: 0 forward, 1 reverse, 2 shuffled by `seed`.
void cuda_emulator_set_order(int order, unsigned seed) {
  cuda_emulator::machine.order = static_cast<cuda_emulator::Order>(order);
  cuda_emulator::machine.shuffle.seed(seed);
}

// Whether launches from now on only leave their name.
void cuda_emulator_set_ghost(int ghost) { cuda_emulator::machine.ghost = ghost != 0; }

// Whether races are looked for from now on.
void cuda_emulator_watch_races(int on) { cuda_emulator::races::watch(on != 0); }

// A tensor of the next call: `rows` rows of `columns` elements, each `stride` elements after the one before.
void cuda_emulator_add_array(const char* name, void* address, size_t item_bytes, size_t rows, size_t columns, size_t stride) {
  const size_t bytes = rows == 0 || columns == 0 ? 0 : ((rows - 1) * stride + columns) * item_bytes;
  const size_t row = rows > 1 ? columns * item_bytes : bytes, step = rows > 1 ? stride * item_bytes : bytes;
  cuda_emulator::exists_from_now({name, reinterpret_cast<std::uintptr_t>(address), item_bytes, row, step, bytes});
}

// Forget everything of the last call but device memory that the file itself has from cudaMalloc.
void cuda_emulator_forget() {
  using namespace cuda_emulator;
  machine.failed = false;
  machine.trouble = {};
  machine.launched_count = 0;
  arrays.erase(std::remove_if(arrays.begin(), arrays.end(), [](const Array& array) { return !array.name.empty(); }),
               arrays.end());
}

// Run `launcher(argument)` on a stack of its own, so that it can be left where it goes wrong.
void cuda_emulator_call(void (*launcher)(void*), void* argument) {
  using namespace cuda_emulator;
  // What a kernel prints is there even if the next thing it does ends the process.
  static const int buffered = std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  static_cast<void>(buffered);
  static char* stack = new_stack(host_stack_bytes);
  static void (*body)(void*);
  static void* given;
  body = launcher, given = argument;
  Context host;
  host.stack_pointer = prepared(stack, host_stack_bytes, [] {
    body(given);
    Context done;
    switch_to(done, machine.host);
  });
  machine.in_host = true;
  switch_to(machine.host, host);
  machine.in_host = false;
  machine.current = nullptr;
  std::fflush(stdout);
}

// What went wrong since `cuda_emulator_forget`: one word, or an empty text; then a sentence; then where.
const char* cuda_emulator_trouble_kind() { return cuda_emulator::machine.trouble.kind.c_str(); }
const char* cuda_emulator_trouble() { return cuda_emulator::machine.trouble.text.c_str(); }
int cuda_emulator_trouble_line() { return cuda_emulator::machine.trouble.line; }
// Of the code, counted from the beginning of the library; 0 where the line is known.
size_t cuda_emulator_trouble_code() {
  const std::uintptr_t code = cuda_emulator::machine.trouble.code;
  return code == 0 ? 0 : code - cuda_emulator::image_begin();
}
// Of the other of two accesses, 0 where there is none.
size_t cuda_emulator_trouble_other_code() {
  const std::uintptr_t code = cuda_emulator::machine.trouble.other_code;
  return code == 0 ? 0 : code - cuda_emulator::image_begin();
}

// What was launched since `cuda_emulator_forget`, one kernel and grid after another; false where there are no more.
bool cuda_emulator_launched(unsigned number, const char** kernel, unsigned* grid, std::uint64_t* calls) {
  if (number >= cuda_emulator::machine.launched_count) return false;
  const cuda_emulator::Launched& launched = cuda_emulator::machine.launched[number];
  *kernel = launched.kernel.c_str();
  grid[0] = launched.grid.x, grid[1] = launched.grid.y, grid[2] = launched.grid.z;
  *calls = launched.calls;
  return true;
}
}
