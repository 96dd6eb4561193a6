// Residual addition and norm, second milestone: a kernel for the sum, and one for the norm, which reads the sum twice.
//
// The threads of a block walk over a row side by side, so a warp's load is one or two lines. Six crossings of the bus, of
// which the last read may come from the L2 cache. The loop that squares stores nothing, and has several loads in flight.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

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
__global__ void add_kernel(const T* x, const T* r, T* s, int64_t cols, int64_t x_row_stride, int64_t r_row_stride,
                           int64_t s_row_stride) {
  x += blockIdx.x * x_row_stride;
  r += blockIdx.x * r_row_stride;
  s += blockIdx.x * s_row_stride;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    s[column] = static_cast<T>(static_cast<float>(x[column]) + static_cast<float>(r[column]));
  }
}

template <typename T>
__global__ void norm_kernel(const T* s, const T* weight, T* out, int64_t cols, int64_t s_row_stride,
                            int64_t out_row_stride, float eps) {
  s += blockIdx.x * s_row_stride;
  out += blockIdx.x * out_row_stride;
  float squares = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    squares += static_cast<float>(s[column]) * static_cast<float>(s[column]);
  }
  const float scale = rsqrtf(over_block(squares) / cols + eps);
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>(static_cast<float>(s[column]) * scale * static_cast<float>(weight[column]));
  }
}

template <typename T>
void residual_norm(const T* x, const T* r, const T* weight, T* s, T* out, int64_t rows, int64_t cols,
                   int64_t x_row_stride, int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps,
                   cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  add_kernel<<<blocks, THREADS, 0, stream>>>(x, r, s, cols, x_row_stride, r_row_stride, s_row_stride);
  norm_kernel<<<blocks, THREADS, 0, stream>>>(s, weight, out, cols, s_row_stride, out_row_stride, eps);
}
