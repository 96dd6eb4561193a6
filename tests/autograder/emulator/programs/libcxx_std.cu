#include <cuda/std/type_traits>
#include <cuda/std/limits>
#include <cuda/std/cstdint>
#include <cuda/std/utility>
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  static_assert(cuda::std::is_same_v<int, cuda::std::int32_t>);
  if (i < n && cuda::std::numeric_limits<float>::infinity() > 1.f) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
