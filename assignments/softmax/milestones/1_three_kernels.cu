// Softmax, first milestone: three kernels, one for each step of the formula.
//
// The first finds every row's maximum, the second the sum of exponentials, the third divides. Between kernels everything goes
// through memory: x is read three times, and the intermediate vectors are written and read back. Inside a block the threads
// halve a row of shared memory again and again, with a barrier each time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

// Bring one value of every thread together; all threads get the result.
template <typename Combine>
__device__ float over_block(float value, Combine combine) {
  __shared__ float values[THREADS];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
  }
  value = values[0];
  __syncthreads();
  return value;
}

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename T>
__global__ void row_max(const T* x, float* largest_of, int64_t cols, int64_t x_row_stride) {
  x += blockIdx.x * x_row_stride;
  float largest = -INFINITY;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    largest = fmaxf(largest, static_cast<float>(x[column]));
  }
  largest = over_block(largest, Larger());
  if (threadIdx.x == 0) largest_of[blockIdx.x] = largest;
}

template <typename T>
__global__ void row_sum(const T* x, const float* largest_of, float* total_of, int64_t cols, int64_t x_row_stride) {
  x += blockIdx.x * x_row_stride;
  const float largest = largest_of[blockIdx.x];
  float total = 0.0f;
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    total += expf(static_cast<float>(x[column]) - largest);
  }
  total = over_block(total, Plus());
  if (threadIdx.x == 0) total_of[blockIdx.x] = total;
}

template <typename T>
__global__ void divide(const T* x, const float* largest_of, const float* total_of, T* out, int64_t cols,
                       int64_t x_row_stride, int64_t out_row_stride) {
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  const float largest = largest_of[blockIdx.x], total = total_of[blockIdx.x];
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>(expf(static_cast<float>(x[column]) - largest) / total);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  float* scratch = nullptr;
  if (cudaMallocAsync(&scratch, 2 * rows * sizeof(float), stream) != cudaSuccess) return;
  const unsigned blocks = static_cast<unsigned>(rows);
  row_max<<<blocks, THREADS, 0, stream>>>(x, scratch, cols, x_row_stride);
  row_sum<<<blocks, THREADS, 0, stream>>>(x, scratch, scratch + rows, cols, x_row_stride);
  divide<<<blocks, THREADS, 0, stream>>>(x, scratch, scratch + rows, out, cols, x_row_stride, out_row_stride);
  cudaFreeAsync(scratch, stream);
}
