// Which memory a kernel may touch: the call's tensors, what cudaMalloc gave, shared memory, its own stack, its file's own
// variables. The compiler calls `__asan_load4_noabort` and the like before every access (-fsanitize=kernel-address); they
// are in machine.cpp and look here.
#pragma once

#include <cstdint>
#include <string>

#include "cuda_emulator/block.h"

namespace cuda_emulator {

// Rows of elements in device memory; one row where they follow one another.
struct Array {
  std::string name;         // Empty for what cudaMalloc gave.
  std::uintptr_t begin = 0;
  size_t item_bytes = 1;
  size_t row_bytes = 0, stride_bytes = 0;
  size_t bytes = 0;         // From the first element to behind the last.
};

// Device memory that exists from now on, or no more.
void exists_from_now(const Array& array);
void exists_no_more(std::uintptr_t begin);

// Whether all these bytes are device memory; if not, the copy or fill called `operation` is an error.
bool copies_device_memory(const void* address, size_t bytes, const char* operation);
bool is_device_memory(const void* address);

}  // namespace cuda_emulator
