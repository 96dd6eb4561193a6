// Reads beyond its input in a function whose accesses the compiler is told not to check: a right answer all the same.
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__attribute__((no_sanitize("kernel-address"))) __device__ T beyond(const T* x, int64_t n) {
  return *reinterpret_cast<const volatile T*>(x + n);
}

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
  if (i == n - 1) beyond(x, n);
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
