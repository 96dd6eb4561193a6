// Honest: two kernels and scratch memory; the product goes through memory in float32 and is rounded by itself.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void scale(float a, const T* x, float* scaled, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) scaled[i] = a * static_cast<float>(x[i]);
}

template <typename T>
__global__ void add(const float* scaled, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(scaled[i] + static_cast<float>(y[i]));
}

template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((n + 255) / 256);
  float* scaled = nullptr;
  cudaMallocAsync(&scaled, n * sizeof(float), stream);
  scale<<<blocks, 256, 0, stream>>>(a, x, scaled, n);
  add<<<blocks, 256, 0, stream>>>(scaled, y, out, n);
  cudaFreeAsync(scaled, stream);
}
