// Celsius to Fahrenheit: out[i] = 1.8 * x[i] + 32.
//
// One line has a mistake. The formula is right.
#include <cstdint>

__global__ void fahrenheit_kernel(const float* x, float* out, int64_t n) {
  const int64_t block = blockIdx.x;
  const int64_t i = block * 512 + threadIdx.x;
  if (i < n) out[i] = 1.8f * x[i] + 32.0f;
}

void fahrenheit(const float* x, float* out, int64_t n, cudaStream_t stream) {
  // Blocks had 512 threads. Somebody made them smaller,
  // tried ten temperatures, and saw that all were right.
  const int threads = 256;
  const unsigned blocks = (n + threads - 1) / threads;
  fahrenheit_kernel<<<blocks, threads, 0, stream>>>(x, out, n);
}
