// Fails: no GPU has blocks of 2048 threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 2048;

// Add one value of every thread; all threads get the result.
__device__ float over_block(float value) {
  __shared__ float values[THREADS];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  value = values[0];
  __syncthreads();
  return value;
}

template <typename T>
__global__ void norm_kernel(const T* x, const T* weight, const T* bias, T* out, int64_t cols,
                            int64_t x_row_stride, int64_t out_row_stride, float eps, int64_t center) {
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  float sum = 0.0f, squares = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) sum += static_cast<float>(x[column]);
  sum = over_block(sum);
  const float mean = center ? sum / cols : 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const float rest = static_cast<float>(x[column]) - mean;
    squares += rest * rest;
  }
  const float scale = rsqrtf(over_block(squares) / cols + eps);
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const float normal = (static_cast<float>(x[column]) - mean) * scale;
    out[column] = static_cast<T>(normal * static_cast<float>(weight[column]) + static_cast<float>(bias[column]));
  }
}

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  norm_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center);
}
