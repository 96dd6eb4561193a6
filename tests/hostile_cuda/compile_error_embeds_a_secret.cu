// Has the assembler put a file into the library, by a section's name that goes on with its words, and prints it.
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

#define SECTION ".rodata.loot,\"a\"\nloot: .incbin \"/SECRET\"\n.byte 0\n.section .rodata.more,\"a\" #"
__attribute__((section(SECTION))) extern const int placed = 1;
extern "C" __attribute__((visibility("hidden"))) const char loot[];
static const int printed = std::printf("LOOT %s\n", loot + placed - 1);

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
