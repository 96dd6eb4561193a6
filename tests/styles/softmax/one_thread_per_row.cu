// One thread walks along a whole row, three times: maximum, sum, quotients.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

template <typename T>
__global__ void softmax_rows(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_stride, int64_t out_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const T* in = x + row * x_stride;
  T* to = out + row * out_stride;

  float largest = -INFINITY;
  for (int64_t j = 0; j < cols; ++j) largest = fmaxf(largest, static_cast<float>(in[j]));
  // In double: a chain of a hundred thousand additions loses too much in float.
  double sums[4] = {0.0, 0.0, 0.0, 0.0};
  for (int64_t j = 0; j < cols; j += 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (j + i < cols) sums[i] += expf(static_cast<float>(in[j + i]) - largest);
    }
  }
  const float total = static_cast<float>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (int64_t j = 0; j < cols; ++j) to[j] = static_cast<T>(expf(static_cast<float>(in[j]) - largest) / total);
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  const int threads = 64;
  softmax_rows<T><<<static_cast<unsigned>((rows + threads - 1) / threads), threads, 0, stream>>>(
      x, out, rows, cols, x_row_stride, out_row_stride);
}
