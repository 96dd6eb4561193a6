// Right: threads that have no column return before the barrier, which waits for no thread that has ended.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 64;

template <typename T>
__global__ void softmax_kernel(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  __shared__ float values[THREADS];
  if (threadIdx.x >= cols) return;
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  const int64_t threads = cols < THREADS ? cols : THREADS;
  float largest = -INFINITY, total = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    largest = fmaxf(largest, static_cast<float>(x[column]));
  }
  values[threadIdx.x] = largest;
  __syncthreads();
  for (int64_t thread = 0; thread < threads; ++thread) largest = fmaxf(largest, values[thread]);
  __syncthreads();
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    total += expf(static_cast<float>(x[column]) - largest);
  }
  values[threadIdx.x] = total;
  __syncthreads();
  total = 0.0f;
  for (int64_t thread = 0; thread < threads; ++thread) total += values[thread];
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>(expf(static_cast<float>(x[column]) - largest) / total);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  softmax_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
}
