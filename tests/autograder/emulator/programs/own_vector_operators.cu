#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <vector_types.h>
#include <cmath>
inline __host__ __device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
inline __host__ __device__ void operator+=(float4& a, float4 b) { a.x += b.x; a.y += b.y; a.z += b.z; a.w += b.w; }
inline __host__ __device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
inline __host__ __device__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline __device__ __host__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline __device__ __host__ float lerp(float a, float b, float t) { return a + t * (b - a); }
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = 4 * (blockIdx.x * 256ll + threadIdx.x);
  for (int64_t k = i; k < min(i + 4, n); ++k) {
    float4 v = make_float4((float)x[k], 0, 0, 0) + make_float4(0, 1, 0, 0);
    v += make_float4((float)y[k], 0, 0, 0);
    if (dot(v, make_float4(0, 1, 0, 0)) == clamp(3.f, 0.f, 1.f) && lerp(1.f, 2.f, .5f) == 1.5f) out[k] = T(v.x);
  }
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 1023) / 1024, 256, 0, stream>>>(x, y, out, n);
}
