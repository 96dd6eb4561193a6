// Tests of a softmax: rows of ordinary numbers and one tolerance for all. Honest softmaxes pass, and mutants do too.
#include <cstdint>

__device__ float element(int test, int column) {
  // Your part: values between -4 and 4 show little. Which rows would show each kind of mistake?
  return (test * 31 + column * 17) % 127 * 0.0631f - 4.0f;
}

// A thread writes one row of `width` elements.
__global__ void write_row(float* x, int* length, float* right, float* allowed, int tests, int width) {
  const int test = blockIdx.x * blockDim.x + threadIdx.x;
  if (test >= tests) return;
  x += static_cast<int64_t>(test) * width;
  right += static_cast<int64_t>(test) * width;
  allowed += static_cast<int64_t>(test) * width;
  // Your part: rows of other lengths.
  const int count = width;
  float largest = -INFINITY, total = 0.0f;
  for (int column = 0; column < count; ++column) largest = fmaxf(largest, element(test, column));
  for (int column = 0; column < count; ++column) total += expf(element(test, column) - largest);
  // All of the row is written, behind the test's end too.
  for (int column = 0; column < width; ++column) {
    const bool used = column < count;
    x[column] = used ? element(test, column) : 0.0f;
    right[column] = used ? expf(element(test, column) - largest) / total : 0.0f;
    // Your part: how far off may an honest answer be?
    allowed[column] = 1e-3f;
  }
  length[test] = count;
}

void write_tests(float* x, int* length, float* right, float* allowed, int64_t tests, int64_t width,
                 cudaStream_t stream) {
  write_row<<<static_cast<unsigned>((tests + 31) / 32), 32, 0, stream>>>(x, length, right, allowed,
                                                                      static_cast<int>(tests), static_cast<int>(width));
}
