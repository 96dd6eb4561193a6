// Softmax: every row of x becomes exp(x) divided by the sum of exp(x) over the row.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 128;

template <typename T>
__global__ void softmax_kernel(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  // One block handles one row. Its threads walk over the columns side by side.
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;

  // Through shared memory each thread's sum reaches all others.
  __shared__ float sums[THREADS];
  float sum = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    // Your part: what is exp(10000)?
    sum += expf(static_cast<float>(x[column]));
  }
  sums[threadIdx.x] = sum;
  // Your part: may a thread read the others' sums already?
  float total = 0.0f;
  for (int thread = 0; thread < THREADS; ++thread) total += sums[thread];

  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>(expf(static_cast<float>(x[column])) / total);
  }
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's matrices.
template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  softmax_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
}
