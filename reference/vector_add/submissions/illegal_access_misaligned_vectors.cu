// Wrong: loads 16 bytes at a time wherever the vectors begin, which no GPU does from an address that is no multiple of 16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  constexpr int WIDTH = 16 / sizeof(T);
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if ((pack + 1) * WIDTH <= n) {
    uint4 a = reinterpret_cast<const uint4*>(x)[pack], b = reinterpret_cast<const uint4*>(y)[pack], sum;
    for (int i = 0; i < WIDTH; ++i) {
      reinterpret_cast<T*>(&sum)[i] = reinterpret_cast<T*>(&a)[i] + reinterpret_cast<T*>(&b)[i];
    }
    reinterpret_cast<uint4*>(out)[pack] = sum;
  } else {
    for (int64_t i = pack * WIDTH; i < n; ++i) out[i] = x[i] + y[i];
  }
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const int64_t packs = (n + 16 / sizeof(T) - 1) / (16 / sizeof(T));
  add<<<static_cast<unsigned>((packs + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
