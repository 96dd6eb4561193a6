// Honest, if slow: no tensor core; a warp for each element of c, whose lanes share the sum and bring it together by shuffles.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void gemm_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                            int64_t b_row_stride, int64_t c_row_stride) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * 4 + threadIdx.y;
  if (element >= m * n) return;
  const int64_t row = element / n, column = element % n;
  float sum = 0.0f;
  for (int64_t l = threadIdx.x; l < k; l += 32) {
    sum += static_cast<float>(a[row * a_row_stride + l]) * static_cast<float>(b[column * b_row_stride + l]);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0) c[row * c_row_stride + column] = static_cast<T>(sum);
}

template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  gemm_kernel<<<static_cast<unsigned>((m * n + 3) / 4), dim3(32, 4), 0, stream>>>(a, b, c, m, n, k, a_row_stride,
                                                                                 b_row_stride, c_row_stride);
}
