// Honest: a fixed number of blocks, whose threads walk over the vector in steps of the whole grid; a fused multiply-add.
#include <cstdint>

template <typename T>
__global__ void convert(const T* __restrict__ x, T* __restrict__ out, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    out[i] = fmaf(x[i], 1.8f, 32.0f);
  }
}

template <typename T>
void fahrenheit(const T* x, T* out, int64_t n, cudaStream_t stream) {
  convert<<<12, 128, 0, stream>>>(x, out, n);
}
