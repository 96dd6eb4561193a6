// Fails: the row is kept in shared memory however long it is, and a block has 48 KiB unless it asks for more.
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
__global__ void softmax_kernel(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  extern __shared__ float row[];
  __shared__ Partial partials[THREADS];
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  Partial mine = {-INFINITY, 0.0f};
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    const float value = static_cast<float>(x[column]);
    row[column] = value;
    mine = merged(mine, {value, 1.0f});
  }
  partials[threadIdx.x] = mine;
  __syncthreads();
  Partial all = partials[0];
  for (int thread = 1; thread < THREADS; ++thread) all = merged(all, partials[thread]);
  for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
    out[column] = static_cast<T>(expf(row[column] - all.largest) / all.total);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  softmax_kernel<<<static_cast<unsigned>(rows), THREADS, cols * sizeof(float), stream>>>(x, out, cols, x_row_stride,
                                                                                         out_row_stride);
}
