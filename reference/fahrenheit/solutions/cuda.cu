// Celsius to Fahrenheit, the staff kernel: out[i] = 1.8 x[i] + 32.
//
// One read and one write of 4 bytes for two operations, one element for each thread. It is the starter without its mistake,
// because nothing is timed.
#include <cstdint>

constexpr int THREADS = 256;

__global__ void fahrenheit_kernel(const float* x, float* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i < n) out[i] = 1.8f * x[i] + 32.0f;
}

void fahrenheit(const float* x, float* out, int64_t n, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((n + THREADS - 1) / THREADS);
  fahrenheit_kernel<<<blocks, THREADS, 0, stream>>>(x, out, n);
}
