// Wrong: no GPU has blocks of 4096 threads; the kernel is not launched.
#include <cstdint>

__global__ void write_row(float* x, int* length, int width) {
  if (threadIdx.x < width) x[blockIdx.x * width + threadIdx.x] = 0.0f;
  length[blockIdx.x] = 0;
}

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  write_row<<<static_cast<unsigned>(tests), 4096, 0, stream>>>(x, length, static_cast<int>(width));
}
