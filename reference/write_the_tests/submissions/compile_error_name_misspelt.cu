// Does not compile: the kernel that is launched has another name.
#include <cstdint>

__global__ void write_row(float* x, int width) { x[blockIdx.x * width + threadIdx.x] = 0.0f; }

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  write_rows<<<static_cast<unsigned>(tests), 32, 0, stream>>>(x, static_cast<int>(width));
}
