// Includes itself twice at every depth, and warns each time: more lines than anybody keeps.
#ifndef CUDA_EMULATOR
#warning once more
#include __FILE__
#include __FILE__
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
