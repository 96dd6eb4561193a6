// Extension style: aligned_vector loads chosen by a template, Welford numbers merged by shuffles, dispatch on
// alignment.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace ext {

template <typename scalar_t, int vec_size>
struct alignas(sizeof(scalar_t) * vec_size) aligned_vector {
  scalar_t val[vec_size];
};

struct WelfordData {
  float mean;
  float m2;
  float count;
};

__device__ __forceinline__ WelfordData welford_online(float value, const WelfordData& cur) {
  const float count = cur.count + 1.0f;
  const float delta = value - cur.mean;
  const float mean = cur.mean + delta * (1.0f / count);
  return {mean, cur.m2 + delta * (value - mean), count};
}

__device__ __forceinline__ WelfordData welford_combine(const WelfordData& a, const WelfordData& b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return {0.0f, 0.0f, 0.0f};
  const float delta = b.mean - a.mean;
  const float share = b.count / count;
  return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share, count};
}

__device__ WelfordData warp_combine(WelfordData wd) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    WelfordData other;
    other.mean = __shfl_down_sync(0xffffffffu, wd.mean, offset);
    other.m2 = __shfl_down_sync(0xffffffffu, wd.m2, offset);
    other.count = __shfl_down_sync(0xffffffffu, wd.count, offset);
    wd = welford_combine(wd, other);
  }
  return wd;
}

constexpr int kWarpsPerBlock = 4;

// blockDim is (32, kWarpsPerBlock): one row, whose packs are dealt out to all threads.
template <typename scalar_t, int vec_size>
__global__ void vectorized_layer_norm_kernel(const int64_t N, const float eps, const bool rms,
                                             const scalar_t* __restrict__ X, const scalar_t* __restrict__ gamma,
                                             const scalar_t* __restrict__ beta, const int64_t x_stride,
                                             const int64_t y_stride, scalar_t* __restrict__ Y) {
  using vec_t = aligned_vector<scalar_t, vec_size>;
  __shared__ WelfordData buf[kWarpsPerBlock];

  const int64_t row = blockIdx.x;
  const vec_t* X_vec = reinterpret_cast<const vec_t*>(X + row * x_stride);
  const vec_t* gamma_vec = reinterpret_cast<const vec_t*>(gamma);
  const vec_t* beta_vec = reinterpret_cast<const vec_t*>(beta);
  vec_t* Y_vec = reinterpret_cast<vec_t*>(Y + row * y_stride);
  const int numx = blockDim.x * blockDim.y;
  const int thrx = threadIdx.x + threadIdx.y * blockDim.x;
  const int64_t n_vec = N / vec_size;

  WelfordData wd = {0.0f, 0.0f, 0.0f};
  for (int64_t i = thrx; i < n_vec; i += numx) {
    const vec_t data = X_vec[i];
#pragma unroll
    for (int k = 0; k < vec_size; ++k) wd = welford_online(static_cast<float>(data.val[k]), wd);
  }
  wd = warp_combine(wd);
  if (threadIdx.x == 0) buf[threadIdx.y] = wd;
  __syncthreads();
  wd = buf[0];
#pragma unroll
  for (int w = 1; w < kWarpsPerBlock; ++w) wd = welford_combine(wd, buf[w]);

  // Without the mean the squares are about zero: those about the mean, and the mean's own.
  const float mean = rms ? 0.0f : wd.mean;
  const float variance = wd.m2 / wd.count + (rms ? wd.mean * wd.mean : 0.0f);
  const float rstd = rsqrtf(variance + eps);

  for (int64_t i = thrx; i < n_vec; i += numx) {
    const vec_t data = X_vec[i], g = gamma_vec[i], b = beta_vec[i];
    vec_t result;
#pragma unroll
    for (int k = 0; k < vec_size; ++k) {
      const float normed = rstd * (static_cast<float>(data.val[k]) - mean);
      result.val[k] = static_cast<scalar_t>(static_cast<float>(g.val[k]) * normed + static_cast<float>(b.val[k]));
    }
    Y_vec[i] = result;
  }
}

template <typename scalar_t>
bool can_vectorize(const void* p, int bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace ext

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  using namespace ext;
  constexpr int vec = 16 / sizeof(T);
  const dim3 threads(32, kWarpsPerBlock), blocks(static_cast<unsigned>(rows));
  const bool wide = cols % vec == 0 && x_row_stride % vec == 0 && out_row_stride % vec == 0 &&
                    can_vectorize<T>(x, 16) && can_vectorize<T>(weight, 16) && can_vectorize<T>(bias, 16) &&
                    can_vectorize<T>(out, 16);
  if (wide) {
    vectorized_layer_norm_kernel<T, vec>
        <<<blocks, threads, 0, stream>>>(cols, eps, center == 0, x, weight, bias, x_row_stride, out_row_stride, out);
  } else {
    vectorized_layer_norm_kernel<T, 1>
        <<<blocks, threads, 0, stream>>>(cols, eps, center == 0, x, weight, bias, x_row_stride, out_row_stride, out);
  }
}
