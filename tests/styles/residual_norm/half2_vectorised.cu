// Pairs of 16-bit numbers (half2, bfloat162) or float2, added as pairs; the row's squares meet by warp shuffles.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ __forceinline__ float2 add2(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ __half2 add2(__half2 a, __half2 b) { return __hadd2(a, b); }
__device__ __forceinline__ __nv_bfloat162 add2(__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2(a, b); }

__device__ __forceinline__ float2 widen(float2 a) { return a; }
__device__ __forceinline__ float2 widen(__half2 a) { return __half22float2(a); }
__device__ __forceinline__ float2 widen(__nv_bfloat162 a) { return __bfloat1622float2(a); }

__device__ __forceinline__ void narrow(float2 a, float2& to) { to = a; }
__device__ __forceinline__ void narrow(float2 a, __half2& to) { to = __floats2half2_rn(a.x, a.y); }
__device__ __forceinline__ void narrow(float2 a, __nv_bfloat162& to) { to = __floats2bfloat162_rn(a.x, a.y); }

template <typename T>
struct PairOf;
template <>
struct PairOf<float> {
  using type = float2;
};
template <>
struct PairOf<__half> {
  using type = __half2;
};
template <>
struct PairOf<__nv_bfloat16> {
  using type = __nv_bfloat162;
};

__device__ float sum_of_block(float value) {
  __shared__ float of_warps[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) sum += of_warps[w];
  return sum;
}

// `pairs` is 0 where some row does not begin at a whole pair: then everything goes one by one.
template <typename T>
__global__ void add_and_norm(const T* x, const T* r, const T* weight, T* s, T* out, int64_t cols, int64_t pairs,
                             int64_t x_stride, int64_t r_stride, int64_t s_stride, int64_t out_stride, float eps) {
  using P = typename PairOf<T>::type;
  const int64_t row = blockIdx.x;
  const T *xr = x + row * x_stride, *rr = r + row * r_stride;
  T *sr = s + row * s_stride, *outr = out + row * out_stride;

  float squares = 0.0f;
  for (int64_t p = threadIdx.x; p < pairs; p += kThreads) {
    const P sum = add2(reinterpret_cast<const P*>(xr)[p], reinterpret_cast<const P*>(rr)[p]);
    reinterpret_cast<P*>(sr)[p] = sum;
    const float2 wide = widen(sum);
    squares += wide.x * wide.x + wide.y * wide.y;
  }
  for (int64_t j = 2 * pairs + threadIdx.x; j < cols; j += kThreads) {
    const T sum = static_cast<T>(static_cast<float>(xr[j]) + static_cast<float>(rr[j]));
    sr[j] = sum;
    squares += static_cast<float>(sum) * static_cast<float>(sum);
  }
  const float scale = rsqrtf(sum_of_block(squares) / static_cast<float>(cols) + eps);

  // Every thread reads back what it has written itself.
  for (int64_t p = threadIdx.x; p < pairs; p += kThreads) {
    const float2 wide = widen(reinterpret_cast<const P*>(sr)[p]);
    const float2 factor = widen(reinterpret_cast<const P*>(weight)[p]);
    P answer;
    narrow(make_float2(wide.x * scale * factor.x, wide.y * scale * factor.y), answer);
    reinterpret_cast<P*>(outr)[p] = answer;
  }
  for (int64_t j = 2 * pairs + threadIdx.x; j < cols; j += kThreads) {
    outr[j] = static_cast<T>(static_cast<float>(sr[j]) * scale * static_cast<float>(weight[j]));
  }
}

template <typename T>
void residual_norm(const T* x, const T* r, const T* weight, T* s, T* out, int64_t rows, int64_t cols,
                   int64_t x_row_stride, int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps,
                   cudaStream_t stream) {
  const uintptr_t starts = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(r) |
                           reinterpret_cast<uintptr_t>(weight) | reinterpret_cast<uintptr_t>(s) |
                           reinterpret_cast<uintptr_t>(out);
  const int64_t strides = x_row_stride | r_row_stride | s_row_stride | out_row_stride;
  const bool paired = starts % (2 * sizeof(T)) == 0 && strides % 2 == 0;
  add_and_norm<T><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      x, r, weight, s, out, cols, paired ? cols / 2 : 0, x_row_stride, r_row_stride, s_row_stride, out_row_stride, eps);
}
