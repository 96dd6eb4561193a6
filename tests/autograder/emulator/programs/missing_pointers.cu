// A kernel's pointer may be missing: NULL is one.
#include <cstddef>

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int n, const T* bias, T* copy) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T sum = x[i] + y[i];
  if (bias != NULL) sum = sum + bias[i];
  if (copy) copy[i] = sum;
  out[i] = sum;
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int n, cudaStream_t stream) {
  add<T><<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n, NULL, NULL);
}
