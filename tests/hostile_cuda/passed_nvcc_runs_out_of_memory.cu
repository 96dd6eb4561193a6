// Has the device's compiler keep more numbers than it has memory for.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

#ifndef CUDA_EMULATOR
#include <utility>

static std::make_integer_sequence<int, 268000000> all;
#endif

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
