// Wrong: 9 / 5 is 1.
#include <cstdint>

__global__ void convert(const float* x, float* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (9 / 5) * x[i] + 32;
}

void fahrenheit(const float* x, float* out, int64_t n, cudaStream_t stream) {
  convert<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, out, n);
}
