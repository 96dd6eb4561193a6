// Wrong: no answer is refused, since any difference is allowed.
#include <cstdint>

__global__ void write_row(float* x, int* length, float* right, float* allowed, int width) {
  for (int column = threadIdx.x; column < width; column += blockDim.x) {
    const int64_t place = static_cast<int64_t>(blockIdx.x) * width + column;
    x[place] = column * 3.0f - 400.0f;
    right[place] = 1.0f / width;
    allowed[place] = INFINITY;
  }
  if (threadIdx.x == 0) length[blockIdx.x] = width;
}

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  write_row<<<static_cast<unsigned>(tests), 64, 0, stream>>>(x, length, right, allowed, static_cast<int>(width));
}
