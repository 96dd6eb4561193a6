// Honest: an overload for each type instead of a template, with sums in float, and `int` for the size.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void add_floats(const float *x, const float *y, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

__global__ void add_halves(const __half *x, const __half *y, __half *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2half(__half2float(x[i]) + __half2float(y[i]));
}

__global__ void add_bfloats(const __nv_bfloat16 *x, const __nv_bfloat16 *y, __nv_bfloat16 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2bfloat16(__bfloat162float(x[i]) + __bfloat162float(y[i]));
}

void vector_add(const float *x, const float *y, float *out, int n, cudaStream_t stream) {
  add_floats<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n);
}

void vector_add(const __half *x, const __half *y, __half *out, int n, cudaStream_t stream) {
  add_halves<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n);
}

void vector_add(const __nv_bfloat16 *x, const __nv_bfloat16 *y, __nv_bfloat16 *out, int n, cudaStream_t stream) {
  add_bfloats<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n);
}
