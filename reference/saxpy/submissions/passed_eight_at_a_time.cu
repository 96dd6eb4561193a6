// Honest: overloads instead of a template, eight neighbouring elements to a thread, one after the other, two-dimensional blocks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__device__ float wide(float value) { return value; }
__device__ float wide(__half value) { return __half2float(value); }
__device__ float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void narrow(float value, float* to) { *to = value; }
__device__ void narrow(float value, __half* to) { *to = __float2half(value); }
__device__ void narrow(float value, __nv_bfloat16* to) { *to = __float2bfloat16(value); }

template <typename T>
__global__ void eight(float a, const T* x, const T* y, T* out, int64_t n) {
  const int64_t thread = (static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  for (int64_t i = thread * 8; i < thread * 8 + 8 && i < n; ++i) narrow(a * wide(x[i]) + wide(y[i]), out + i);
}

unsigned blocks(int64_t n) { return static_cast<unsigned>((n + 1023) / 1024); }

void saxpy(float a, const float* x, const float* y, float* out, int64_t n, cudaStream_t stream) {
  eight<<<blocks(n), dim3(32, 4), 0, stream>>>(a, x, y, out, n);
}
void saxpy(float a, const __half* x, const __half* y, __half* out, int64_t n, cudaStream_t stream) {
  eight<<<blocks(n), dim3(32, 4), 0, stream>>>(a, x, y, out, n);
}
void saxpy(float a, const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int64_t n, cudaStream_t stream) {
  eight<<<blocks(n), dim3(32, 4), 0, stream>>>(a, x, y, out, n);
}
