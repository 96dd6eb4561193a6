// Wrong: adds the vectors as they are; right for a factor of one.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void sums(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(static_cast<float>(x[i]) + static_cast<float>(y[i]));
}

template <typename T>
void saxpy(float, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  sums<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
