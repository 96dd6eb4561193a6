// The factor is a number, not a vector.
#include <cstdint>

template <typename T>
__global__ void scaled_sum(const float* a, const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(*a * static_cast<float>(x[i]) + static_cast<float>(y[i]));
}

template <typename T>
void saxpy(const float* a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  scaled_sum<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(a, x, y, out, n);
}
