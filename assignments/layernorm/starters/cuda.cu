// LayerNorm and RMSNorm: every row is brought to mean zero and variance one, then scaled and shifted by column.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 128;

template <typename T>
__global__ void norm_kernel(const T* x, const T* weight, const T* bias, T* out, int64_t cols,
                            int64_t x_row_stride, int64_t out_row_stride, float eps, int64_t center) {
  // One block handles one row. Its threads walk over the columns side by side.
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;

  // Through shared memory each thread's sum reaches all others.
  __shared__ float sums[THREADS], squares[THREADS];
  float sum = 0.0f, square = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const float value = static_cast<float>(x[column]);
    sum += value;
    square += value * value;
  }
  sums[threadIdx.x] = sum;
  squares[threadIdx.x] = square;
  __syncthreads();
  float mean = 0.0f, variance = 0.0f;
  for (int thread = 0; thread < THREADS; ++thread) {
    mean += sums[thread] / cols;
    variance += squares[thread] / cols;
  }
  // Your part: what remains of this difference when the mean is 10000 and the deviation 1? And where is `center`?
  variance -= mean * mean;

  // Your part: weight and bias.
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>((static_cast<float>(x[column]) - mean) * rsqrtf(variance + eps));
  }
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's matrices.
template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  norm_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center);
}
