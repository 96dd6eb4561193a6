// Products by wmma into float scratch of cudaMallocAsync, a launch for each part; then a grid-stride epilogue.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int kRows = 64, kCols = 64, kDepth = 64, kPitch = kDepth + 8, kThreads = 128;

template <typename T>
__global__ void product(const T* a, const T* b, float* h, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb) {
  // The sums reuse the tiles' memory when the tiles are no longer needed.
  __shared__ alignas(32) unsigned char memory[(kRows + kCols) * kPitch * 2];
  auto left = reinterpret_cast<T(*)[kPitch]>(memory);
  auto right = left + kRows;
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kRows, col0 = static_cast<int64_t>(blockIdx.x) * kCols;
  const int warp = threadIdx.x / 32;

  // A warp has 16 rows and all columns.
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[kCols / 16];
  for (auto& fragment : acc) wmma::fill_fragment(fragment, 0.0f);
  for (int64_t start = 0; start < k; start += kDepth) {
    for (int i = threadIdx.x; i < kRows * kDepth; i += kThreads) {
      const int64_t row = row0 + i / kDepth, l = start + i % kDepth;
      left[i / kDepth][i % kDepth] = row < m && l < k ? a[row * lda + l] : static_cast<T>(0.0f);
    }
    for (int i = threadIdx.x; i < kCols * kDepth; i += kThreads) {
      const int64_t col = col0 + i / kDepth, l = start + i % kDepth;
      right[i / kDepth][i % kDepth] = col < n && l < k ? b[col * ldb + l] : static_cast<T>(0.0f);
    }
    __syncthreads();
    for (int l = 0; l < kDepth; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> of_a;
      wmma::load_matrix_sync(of_a, &left[16 * warp][l], kPitch);
      for (int j = 0; j < kCols / 16; ++j) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> of_b;
        wmma::load_matrix_sync(of_b, &right[16 * j][l], kPitch);
        wmma::mma_sync(acc[j], of_a, of_b, acc[j]);
      }
    }
    __syncthreads();
  }
  auto sums = reinterpret_cast<float(*)[kCols]>(memory);
  for (int j = 0; j < kCols / 16; ++j) {
    wmma::store_matrix_sync(&sums[16 * warp][16 * j], acc[j], kCols, wmma::mem_row_major);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kCols; i += kThreads) {
    const int64_t row = row0 + i / kCols, col = col0 + i % kCols;
    if (row < m && col < n) h[row * n + col] = sums[i / kCols][i % kCols];
  }
}

template <typename T>
__global__ void epilogue(const float* h, const T* bias, const T* residual, T* out, int64_t m, int64_t n, bool gated,
                         int64_t residual_stride, int64_t out_stride) {
  const int64_t size = m * n, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) {
    const int64_t row = i / n, col = i % n;
    const float x = h[i] + static_cast<float>(bias[col]);
    float active;
    if (gated) {
      const float y = h[size + i] + static_cast<float>(bias[n + col]);
      active = x / (1.0f + expf(-x)) * y;
    } else {
      active = 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    }
    out[row * out_stride + col] = static_cast<T>(active + static_cast<float>(residual[row * residual_stride + col]));
  }
}

template <typename T>
void gemm_epilogue(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                   int64_t parts, int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride,
                   int64_t out_row_stride, cudaStream_t stream) {
  float* h = nullptr;
  if (cudaMallocAsync(&h, parts * m * n * sizeof(float), stream) != cudaSuccess) return;
  const dim3 grid(static_cast<unsigned>((n + kCols - 1) / kCols), static_cast<unsigned>((m + kRows - 1) / kRows));
  for (int64_t part = 0; part < parts; ++part) {
    product<T><<<grid, kThreads, 0, stream>>>(a, b + part * n * b_row_stride, h + part * m * n, m, n, k, a_row_stride,
                                              b_row_stride);
  }
  int64_t blocks = (m * n + 255) / 256;
  if (blocks > 132 * 16) blocks = 132 * 16;
  epilogue<T><<<static_cast<unsigned>(blocks), 256, 0, stream>>>(h, bias, residual, out, m, n, parts == 2,
                                                                residual_row_stride, out_row_stride);
  cudaFreeAsync(h, stream);
}
