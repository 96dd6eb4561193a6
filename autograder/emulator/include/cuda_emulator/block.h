// One block at a time, its threads as fibers: what a kernel and its launch see of the machine. machine.cpp runs it.
//
// One warp after the other runs as far as its own barriers let it, in the order that was asked for; when all wait or are done,
// the block passes its barrier. So a missing __syncthreads() gives another result in another order.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <type_traits>

#include "cuda_emulator/errors.h"
#include "cuda_emulator/fiber.h"
#include "cuda_emulator/vectors.h"

// Code of ours that reads what no kernel may read, such as a launch's arguments on the host's stack.
#define CUDA_EMULATOR_UNCHECKED __attribute__((no_sanitize("thread", "alignment", "bounds")))
// Code of ours that touches the student's memory: an error in it is told at the line that calls it.
#define CUDA_EMULATOR_INLINE __attribute__((always_inline)) inline

// The line of the call is the default argument: it is evaluated where the function is called.
#define CUDA_EMULATOR_LINE int line_ = __builtin_LINE()

namespace cuda_emulator {

constexpr unsigned warp_size = 32;
constexpr unsigned max_block_threads = 1024;
constexpr size_t max_static_shared_bytes = 48 * 1024;
constexpr size_t max_shared_bytes = 227 * 1024;
constexpr unsigned char poison = 0xCB;  // As a float about -2.7e7, as a double about -2.5e54: it shows in a result.
constexpr unsigned max_launches = 64;   // How many kernels and grids of one call are told apart in its record.

enum class State : unsigned char { ready, at_barrier, at_warp, gathering, done };
enum class Order : int { forward = 0, reverse = 1, shuffled = 2 };

// One value that a lane hands to its warp.
struct alignas(16) Slot {
  unsigned char bytes[32];
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
  bool says = false;      // What it says at a barrier that counts.
};

// A kernel that was launched with a grid, and how often.
struct Launched {
  std::string kernel;
  dim3 grid;
  std::uint64_t calls = 0;
};

// What went wrong first: `kind` is one word, `line` 0 where only the address of the code is known.
struct Trouble {
  std::string kind, text;
  int line = 0;
  std::uintptr_t code = 0;
  std::uintptr_t other_code = 0;  // Of the other of two accesses; the text has `{line}` where its line belongs.
  cudaError_t error = cudaErrorLaunchFailure;
};

// Everything there is one of, because one launch runs at a time. Kernels read it: no part that they need is on the heap.
struct Machine {
  Thread threads[max_block_threads];
  unsigned count = 0;  // Threads of a block of this launch.
  int agreed = 0;      // Of them, how many said yes at the barrier that was passed last.
  Thread* current = nullptr;
  Context scheduler;
  Context host;        // The launcher, a fiber too, so that it can be left where it went wrong.
  bool in_host = false;
  uint3 block{};
  dim3 block_dim, grid_dim;
  void (*body)(void*) = nullptr;
  void* arguments = nullptr;
  const char* kernel = "";
  int launch_line = 0;
  bool kernel_began = false;  // A thread of this launch has come to its kernel's first line.
  bool asking = false;        // It is run for what it says there, and nothing else.
  long long asked_threads = 0;
  size_t dynamic_bytes = 0;
  std::uint64_t block_number = 0;  // Counts all blocks of all launches: says whose content shared memory holds.
  size_t static_shared_bytes = 0;
  size_t dynamic_limit = max_static_shared_bytes;  // Of this launch.
  bool wrote = false;  // Some thread changed memory that others see.
  Order order = Order::forward;
  bool ghost = false;  // Launches are recorded and nothing else.
  std::mt19937 shuffle;
  bool failed = false;
  Trouble trouble;
  Launched launched[max_launches];
  unsigned launched_count = 0;
};

extern Machine machine;

// A launch's dynamic shared memory begins at `dynamic_shared + shared_margin_bytes`; nobody may touch what is before it, or
// behind what the launch gave.
constexpr size_t shared_margin_bytes = 256 * 1024;
extern unsigned char dynamic_shared[];

// Say what went wrong, once; the first thing is the cause, what follows from it is noise.
__attribute__((format(printf, 3, 4))) void fail(const char* kind, int line, const char* format, ...);

// Only a GPU has what was asked for at this line, or by this instruction where no line is known.
[[noreturn]] void gpu_only(const char* what, int line, std::uintptr_t code = 0);

inline Thread& current() { return *machine.current; }
inline unsigned lane() { return machine.current->linear % warp_size; }

std::string block_name(uint3 at);
// "block (1,0,0) of add": where a kernel is.
std::string here_in_grid();
// "thread (5,0,0) of block (1,0,0) of add".
std::string this_thread();

// Let somebody else run; returns when the scheduler resumes this thread.
void wait_as(State state);

// End this thread for ever, and with it the launch: it said what went wrong. On the host: end the launcher.
[[noreturn]] void stop_thread();

void barrier(int line, const char* operation);

// --- launching -------------------------------------------------------------------------------------------------------

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  Configuration(dim3 grid_, dim3 block_, size_t shared_bytes_ = 0, const void* /*stream*/ = nullptr)
      : grid(grid_), block(block_), shared_bytes(shared_bytes_) {}
};

// Check, record and run `body(arguments)` for every thread of the grid.
void run_launch(const char* kernel, int line, const Configuration& configuration, void (*body)(void*), void* arguments);

// What every kernel calls first, with what its __launch_bounds__ say; 0 are none.
void kernel_begins(long long most_threads = 0, long long least_blocks = 0, long long most_blocks_of_a_cluster = 0);

// Launches of the kernel at this address may have as many bytes of dynamic shared memory.
void may_share(const void* kernel, size_t bytes);
size_t shared_limit_of(const void* kernel);
// How many threads a block of this kernel may have.
int most_threads_of(const void* kernel);
// As messages and the record call the kernel at this address.
std::string name_of(const void* kernel);

// kernel<<<configuration>>>(arguments…). After something went wrong nothing is launched any more, as on a GPU.
template <class Kernel, class... Arguments>
CUDA_EMULATOR_UNCHECKED void launch(const char* name, int line, const Configuration& configuration, Kernel kernel,
                                    Arguments... arguments) {
  auto call = [&]() CUDA_EMULATOR_UNCHECKED { kernel(arguments...); };
  auto body = [](void* argument) CUDA_EMULATOR_UNCHECKED { (*static_cast<decltype(call)*>(argument))(); };
  run_launch(name, line, configuration, body, &call);
}

// --- shared memory ---------------------------------------------------------------------------------------------------

// A `__shared__` variable comes into being with its block: the first thread that meets it fills it with poison.
struct SharedOwner {
  std::uint64_t block_number = 0;
};

void shared_comes_into_being(void* variable, size_t bytes, SharedOwner& owner, const char* name, int line);

template <class T>
CUDA_EMULATOR_UNCHECKED void shared_begins(T& variable, SharedOwner& owner, const char* name, int line) {
  using Element = std::remove_cv_t<std::remove_all_extents_t<T>>;
  static_assert(std::is_trivially_copyable_v<Element>, "a __shared__ variable is plain data");
  if (owner.block_number == machine.block_number) return;
  // Warps that agree without a barrier declare it volatile.
  void* const memory = const_cast<void*>(static_cast<const volatile void*>(&variable));
  shared_comes_into_being(memory, sizeof(T), owner, name, line);
}

}  // namespace cuda_emulator
