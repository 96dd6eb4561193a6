// Not fused: a wmma product into a float workspace from cudaMallocAsync, then a second kernel for bias, activation,
// residual.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#define TORCH_LIKE_CHECK(cond, what) \
  if (!(cond)) throw std::runtime_error(std::string("gemm_epilogue: ") + (what))

namespace {

using namespace nvcuda;

constexpr int kTile = 64;      // rows and columns of a block
constexpr int kDepth = 32;
constexpr int kThreads = 128;  // four warps, 32 x 32 each
constexpr int kPitch = kDepth + 8;

template <typename scalar_t>
__global__ void __launch_bounds__(kThreads)
    product_kernel(const scalar_t* __restrict__ a, const scalar_t* __restrict__ b, float* __restrict__ h, int64_t m,
                   int64_t n, int64_t k, int64_t lda, int64_t ldb) {
  __shared__ __align__(32) scalar_t a_s[kTile * kPitch];
  __shared__ __align__(32) scalar_t b_s[kTile * kPitch];
  __shared__ __align__(32) float out_s[4][16 * 16];

  const int64_t part = blockIdx.z;
  b += part * n * ldb;
  h += part * m * n;
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, col0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int wr = warp / 2 * 32, wc = warp % 2 * 32;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(acc[i][j], 0.0f);

  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const int r = i / kDepth, l = i % kDepth;
      const bool in_k = k0 + l < k;
      a_s[r * kPitch + l] = in_k && row0 + r < m ? a[(row0 + r) * lda + k0 + l] : static_cast<scalar_t>(0.0f);
      b_s[r * kPitch + l] = in_k && col0 + r < n ? b[(col0 + r) * ldb + k0 + l] : static_cast<scalar_t>(0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < kDepth; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, scalar_t, wmma::row_major> fa[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, scalar_t, wmma::col_major> fb[2];
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(fa[i], a_s + (wr + 16 * i) * kPitch + l, kPitch);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(fb[j], b_s + (wc + 16 * j) * kPitch + l, kPitch);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
    }
    __syncthreads();
  }

  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(out_s[warp], acc[i][j], 16, wmma::mem_row_major);
      __syncwarp();
      for (int e = lane; e < 256; e += 32) {
        const int64_t row = row0 + wr + 16 * i + e / 16, col = col0 + wc + 16 * j + e % 16;
        if (row < m && col < n) h[row * n + col] = out_s[warp][e];
      }
      __syncwarp();
    }
}

__device__ __forceinline__ float sigmoid(float z) { return 1.0f / (1.0f + expf(-z)); }

template <typename scalar_t>
__global__ void epilogue_kernel(const float* __restrict__ h, const scalar_t* __restrict__ bias,
                                const scalar_t* __restrict__ residual, scalar_t* __restrict__ out, int64_t m, int64_t n,
                                bool gated, int64_t ldr, int64_t ldo) {
  const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (col >= n) return;
  const float first_bias = static_cast<float>(bias[col]);
  const float second_bias = gated ? static_cast<float>(bias[n + col]) : 0.0f;
  for (int64_t row = blockIdx.y; row < m; row += gridDim.y) {
    const float x = h[row * n + col] + first_bias;
    float y;
    if (gated) {
      y = x * sigmoid(x) * (h[(m + row) * n + col] + second_bias);
    } else {
      // x (1 + tanh z) / 2 is x times the sigmoid of 2 z.
      y = x * sigmoid(2.0f * 0.7978845608028654f * (x + 0.044715f * x * x * x));
    }
    out[row * ldo + col] = static_cast<scalar_t>(y + static_cast<float>(residual[row * ldr + col]));
  }
}

}  // namespace

template <typename T>
void gemm_epilogue(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                   int64_t parts, int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride,
                   int64_t out_row_stride, cudaStream_t stream) {
  TORCH_LIKE_CHECK(parts == 1 || parts == 2, "parts must be 1 or 2");
  float* h = nullptr;
  TORCH_LIKE_CHECK(cudaMallocAsync(reinterpret_cast<void**>(&h), sizeof(float) * parts * m * n, stream) == cudaSuccess,
                   "no memory for the workspace");
  const dim3 tiles(static_cast<unsigned>((n + kTile - 1) / kTile), static_cast<unsigned>((m + kTile - 1) / kTile),
                   static_cast<unsigned>(parts));
  product_kernel<T><<<tiles, kThreads, 0, stream>>>(a, b, h, m, n, k, a_row_stride, b_row_stride);
  const dim3 strips(static_cast<unsigned>((n + 255) / 256), static_cast<unsigned>(m < 4096 ? m : 4096));
  epilogue_kernel<T><<<strips, 256, 0, stream>>>(h, bias, residual, out, m, n, parts == 2, residual_row_stride,
                                                 out_row_stride);
  TORCH_LIKE_CHECK(cudaGetLastError() == cudaSuccess, "launch failed");
  TORCH_LIKE_CHECK(cudaFreeAsync(h, stream) == cudaSuccess, "the workspace was not given back");
}
