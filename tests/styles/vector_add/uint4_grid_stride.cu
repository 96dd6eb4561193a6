// A grid-stride loop over packs of 16 bytes (uint4), with a second loop over single elements for the tail.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
union Pack {
  uint4 bits;
  T lanes[16 / sizeof(T)];
  __device__ Pack() {}
};

template <typename T>
__global__ void add_wide(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ out, int64_t n,
                         int64_t packs) {
  constexpr int kLanes = 16 / sizeof(T);
  const int64_t tid = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t p = tid; p < packs; p += stride) {
    Pack<T> a, b, c;
    a.bits = reinterpret_cast<const uint4*>(x)[p];
    b.bits = reinterpret_cast<const uint4*>(y)[p];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) c.lanes[i] = a.lanes[i] + b.lanes[i];
    reinterpret_cast<uint4*>(out)[p] = c.bits;
  }
  // What is left over, or everything when the pointers are not aligned.
  for (int64_t i = packs * kLanes + tid; i < n; i += stride) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const uintptr_t low_bits =
      (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) | reinterpret_cast<uintptr_t>(out)) & 15;
  const int64_t packs = low_bits == 0 ? n / static_cast<int64_t>(16 / sizeof(T)) : 0;
  const int threads = 256;
  int64_t blocks = ((packs > 0 ? packs : n) + threads - 1) / threads;
  if (blocks > 132 * 16) blocks = 132 * 16;
  add_wide<T><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(x, y, out, n, packs);
}
