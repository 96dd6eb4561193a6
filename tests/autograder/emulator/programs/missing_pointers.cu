// A kernel's pointer may be missing: NULL is one, and so is a literal 0, which is also a number.
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

// The number's type is that of the argument.
template <typename Number>
__global__ void first(float* out, const float* x, Number begin, int n, float* copy) {
  static_assert(sizeof(Number) == sizeof(int));
  if (threadIdx.x == 0 && begin < n && !copy) out[begin] = x[begin];
}

__global__ void nothing(const float*, int) {}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int n, cudaStream_t stream) {
  const int half = n / 2, rest = n - half;
  add<T><<<(half + 255) / 256, 256, 0, stream>>>(x, y, out, half, NULL, NULL);
  add<T><<<(rest + 255) / 256, 256, 0, stream>>>(x + half, y + half, out + half, static_cast<int>(rest), 0, /* no copy */ 0);
  float* spare;
  cudaMalloc(&spare, sizeof(float));
  first<<<1, 32>>>(spare, out, 0, n, 0);
  nothing<<<1, 1>>>(0, 0);
  cudaMemcpy(out, spare, sizeof(float), cudaMemcpyDeviceToDevice);
  cudaFree(spare);
}
