// Wrong: one thread adds all numbers one after the other; beside 2^24 ones are lost.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void chain(const T* x, float* total, T* largest, int64_t n) {
  float sum = 0.0f, most = -INFINITY;
  for (int64_t i = 0; i < n; ++i) {
    sum += static_cast<float>(x[i]);
    most = fmaxf(most, static_cast<float>(x[i]));
  }
  *total = sum;
  *largest = static_cast<T>(most);
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  chain<<<1, 1, 0, stream>>>(x, total, largest, n);
}
