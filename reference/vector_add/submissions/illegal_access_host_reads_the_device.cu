// Wrong: the launcher adds by itself, through pointers that are of use on the device only.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(static_cast<float>(x[i]) + static_cast<float>(y[i]));
}
