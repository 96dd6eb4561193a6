// Honest: copies x into memory of its own, then adds y to that, in two kernels on one stream.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void copy(const T* from, T* to, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  T* scratch = nullptr;
  if (cudaMallocAsync(&scratch, n * sizeof(T), stream) != cudaSuccess) return;
  const unsigned blocks = static_cast<unsigned>((n + 255) / 256);
  copy<<<blocks, 256, 0, stream>>>(x, scratch, n);
  add<<<blocks, 256, 0, stream>>>(scratch, y, out, n);
  cudaFreeAsync(scratch, stream);
}
