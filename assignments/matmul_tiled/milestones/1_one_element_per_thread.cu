// Matmul, first milestone: a thread for every element of c, which reads a row of a and a column of b from memory.
//
// For every multiplication two elements are loaded. The caches help as far as they reach: neighbouring threads read the
// same row of a, and neighbouring elements of b.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void matmul_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                              int64_t b_row_stride, int64_t c_row_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.y) * 16 + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 16 + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int64_t l = 0; l < k; ++l) {
    sum += static_cast<float>(a[row * a_row_stride + l]) * static_cast<float>(b[l * b_row_stride + column]);
  }
  c[row * c_row_stride + column] = static_cast<T>(sum);
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((n + 16 - 1) / 16), static_cast<unsigned>((m + 16 - 1) / 16));
  matmul_kernel<<<blocks, dim3(16, 16), 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
