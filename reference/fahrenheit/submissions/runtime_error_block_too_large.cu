// Wrong: no GPU has blocks of 2048 threads; the kernel is not launched.
#include <cstdint>

__global__ void convert(const float* x, float* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 1.8f * x[i] + 32.0f;
}

void fahrenheit(const float* x, float* out, int64_t n, cudaStream_t stream) {
  convert<<<static_cast<unsigned>((n + 2047) / 2048), 2048, 0, stream>>>(x, out, n);
}
