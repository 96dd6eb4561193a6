// Does not load: a kernel, and nothing that launches it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// How many half-way points lie below: those where the tie goes down count from the next number on.
__device__ unsigned e2m1_code(float a) {
  return (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
}

__global__ void codes(const float* x, uint8_t* packed, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) packed[i] = static_cast<uint8_t>(e2m1_code(x[2 * i]) | e2m1_code(x[2 * i + 1]) << 4);
}
