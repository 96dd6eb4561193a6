// SAXPY, first milestone: a grid-stride loop, with a grid that is too small.
//
// 32 blocks are right for every n, which is what the loop is for. But a GPU has more than a hundred multiprocessors, and all
// but 32 of them have nothing to do.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int BLOCKS = 32;

template <typename T>
__global__ void saxpy_strided(float a, const T* x, const T* y, T* out, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n; i += stride) {
    out[i] = static_cast<T>(fmaf(a, static_cast<float>(x[i]), static_cast<float>(y[i])));
  }
}

template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  saxpy_strided<<<BLOCKS, THREADS, 0, stream>>>(a, x, y, out, n);
}
