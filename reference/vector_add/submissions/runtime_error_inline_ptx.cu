// Right on a GPU, and refused on the CPU lane by name: there is no PTX to be run there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__device__ unsigned lane() {
  unsigned number;
  asm("mov.u32 %0, %laneid;" : "=r"(number));
  return number;
}

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 32 + lane();
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>((n + 31) / 32), 32, 0, stream>>>(x, y, out, n);
}
