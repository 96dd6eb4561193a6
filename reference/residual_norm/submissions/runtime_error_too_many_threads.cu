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
  return values[0];
}

template <typename T>
__global__ void norm_kernel(const T* x, const T* r, const T* weight, T* s, T* out, int64_t cols, int64_t x_row_stride,
                            int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps) {
  x += blockIdx.x * x_row_stride;
  r += blockIdx.x * r_row_stride;
  s += blockIdx.x * s_row_stride;
  out += blockIdx.x * out_row_stride;
  float squares = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const T sum = static_cast<T>(static_cast<float>(x[column]) + static_cast<float>(r[column]));
    s[column] = sum;
    squares += static_cast<float>(sum) * static_cast<float>(sum);
  }
  const float root = sqrtf(over_block(squares) / cols + eps);
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>(static_cast<float>(s[column]) / root * static_cast<float>(weight[column]));
  }
}

template <typename T>
void residual_norm(const T* x, const T* r, const T* weight, T* s, T* out, int64_t rows, int64_t cols,
                   int64_t x_row_stride, int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps,
                   cudaStream_t stream) {
  norm_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, r, weight, s, out, cols, x_row_stride, r_row_stride,
                                                                   s_row_stride, out_row_stride, eps);
}
