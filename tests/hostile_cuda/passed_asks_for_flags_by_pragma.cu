// Asks for flags of the compiler by pragmas, among them a plug-in: none of them is heard.
#pragma GCC optimize("-fplugin=/tmp/plugin.so")
#pragma GCC optimize("-fno-sanitize=all", "fast-math")
#pragma GCC system_header
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
