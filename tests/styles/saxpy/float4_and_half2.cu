// Vector types by overloads: float4 for float, and half2 or bfloat162 pairs for the 16-bit types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__device__ __forceinline__ float4 axpy(float a, float4 x, float4 y) {
  return make_float4(fmaf(a, x.x, y.x), fmaf(a, x.y, y.y), fmaf(a, x.z, y.z), fmaf(a, x.w, y.w));
}

__device__ __forceinline__ __half2 axpy(float a, __half2 x, __half2 y) {
  const float2 xf = __half22float2(x), yf = __half22float2(y);
  return __floats2half2_rn(fmaf(a, xf.x, yf.x), fmaf(a, xf.y, yf.y));
}

__device__ __forceinline__ __nv_bfloat162 axpy(float a, __nv_bfloat162 x, __nv_bfloat162 y) {
  const float2 xf = __bfloat1622float2(x), yf = __bfloat1622float2(y);
  return __floats2bfloat162_rn(fmaf(a, xf.x, yf.x), fmaf(a, xf.y, yf.y));
}

template <typename T>
struct Wide;
template <>
struct Wide<float> {
  using type = float4;
  static constexpr int width = 4;
};
template <>
struct Wide<__half> {
  using type = __half2;
  static constexpr int width = 2;
};
template <>
struct Wide<__nv_bfloat16> {
  using type = __nv_bfloat162;
  static constexpr int width = 2;
};

template <typename T>
__global__ void saxpy_wide(float a, const T* x, const T* y, T* out, int64_t n) {
  using W = typename Wide<T>::type;
  constexpr int kWidth = Wide<T>::width;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t whole = n / kWidth;
  if (i < whole) {
    reinterpret_cast<W*>(out)[i] =
        axpy(a, reinterpret_cast<const W*>(x)[i], reinterpret_cast<const W*>(y)[i]);
  }
  if (i == whole) {
    for (int64_t j = whole * kWidth; j < n; ++j) {
      out[j] = static_cast<T>(fmaf(a, static_cast<float>(x[j]), static_cast<float>(y[j])));
    }
  }
}

template <typename T>
__global__ void saxpy_plain(float a, const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(fmaf(a, static_cast<float>(x[i]), static_cast<float>(y[i])));
}

template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  constexpr int kThreads = 512;
  const uintptr_t all =
      reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) | reinterpret_cast<uintptr_t>(out);
  if (all % sizeof(typename Wide<T>::type) == 0) {
    const int64_t work = n / Wide<T>::width + 1;
    saxpy_wide<T><<<static_cast<unsigned>((work + kThreads - 1) / kThreads), kThreads, 0, stream>>>(a, x, y, out, n);
  } else {
    saxpy_plain<T><<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(a, x, y, out, n);
  }
}
