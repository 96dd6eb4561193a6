// Which memory a kernel may touch: the call's tensors, what cudaMalloc gave, shared memory, its own stack, its file's own
// variables, what it has from malloc. The compiler calls `__tsan_read4` and the like before every access (-fsanitize=thread); they are in
// machine.cpp and look here.
#pragma once

#include <cstdint>
#include <string>

#include "cuda_emulator/block.h"
#include "cuda_emulator/races.h"

namespace cuda_emulator {

// Rows of elements in device memory; one row where they follow one another.
struct Array {
  std::string name;         // Empty for what cudaMalloc gave.
  std::uintptr_t begin = 0;
  size_t item_bytes = 1;
  size_t row_bytes = 0, stride_bytes = 0;
  size_t bytes = 0;         // From the first element to behind the last.
  bool host_too = false;    // The host may touch it as well.
  std::shared_ptr<races::Shadow> shadow = nullptr;  // Once races are looked for in it.
};

// Device memory that exists from now on, or no more.
void exists_from_now(const Array& array);
void exists_no_more(std::uintptr_t begin);

// Whether all these bytes are device memory; if not, the copy or fill called `operation` is an error.
bool copies_device_memory(const void* address, size_t bytes, const char* operation);
bool is_device_memory(const void* address);
bool is_device_only(const void* address);

// A cudaMemcpy at `line` was told that its other end is on the host, and that is device memory.
void notice_of_direction(const void* address, const char* to_or_from, int line);

// Device memory as messages call it: "element 5 of counts".
std::string place_of(std::uintptr_t address);

// Where this library lies: code is counted from there.
std::uintptr_t image_begin();

// How much kernels may have from malloc and new, all together.
size_t& kernel_heap_bytes();

// Code of ours is about to read or write, for the student's line that called it.
void will_read(const void* from, size_t bytes);
void will_write(void* to, size_t bytes);

// A copy of a thread's that is under way from now on: of what it moves nothing is there before it is waited for.
void copy_later(void* to, const void* from, size_t bytes, size_t zeros);
void commit_copies();
// Wait for all batches of this thread's but the last `left`.
void wait_for_copies(unsigned left);

}  // namespace cuda_emulator
