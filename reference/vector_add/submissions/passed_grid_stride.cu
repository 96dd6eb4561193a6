// Honest: a fixed number of blocks, whose threads walk over the vectors in steps of the whole grid.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void add(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    out[i] = __ldg(&x[i]) + __ldg(&y[i]);
  }
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<12, 128, 0, stream>>>(x, y, out, n);
}
