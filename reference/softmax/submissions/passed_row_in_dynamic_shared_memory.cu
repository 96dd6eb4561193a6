// Honest: a row of exponentials in dynamic shared memory where it fits, and online sums per thread where it does not.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 64;

struct Partial {
  float largest, total;
};

__device__ Partial merged(Partial a, Partial b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0.0f};
  return {largest, a.total * expf(a.largest - largest) + b.total * expf(b.largest - largest)};
}

template <typename T>
__global__ void softmax_kernel(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
                               bool keeps_row) {
  extern __shared__ float row[];
  __shared__ Partial partials[THREADS];
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  Partial mine = {-INFINITY, 0.0f};
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const float value = static_cast<float>(x[column]);
    if (keeps_row) row[column] = value;
    mine = merged(mine, {value, 1.0f});
  }
  partials[threadIdx.x] = mine;
  __syncthreads();
  Partial all = partials[0];
  for (int thread = 1; thread < THREADS; ++thread) all = merged(all, partials[thread]);
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const float value = keeps_row ? row[column] : static_cast<float>(x[column]);
    out[column] = static_cast<T>(expf(value - all.largest) / all.total);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  const bool keeps_row = cols * sizeof(float) <= 40 * 1024;
  const size_t bytes = keeps_row ? cols * sizeof(float) : 0;
  softmax_kernel<<<static_cast<unsigned>(rows), THREADS, bytes, stream>>>(x, out, cols, x_row_stride, out_row_stride,
                                                                          keeps_row);
}
