// Host-side scratch by cudaMalloc and cudaFree in every call: b is transposed into it, and then rows are multiplied.
#include <cuda_runtime.h>

#include <cstdint>

template <typename T>
__global__ void turn(const T* b, float* turned, int64_t n, int64_t k, int64_t b_row_stride) {
  const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t l = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  if (col < n && l < k) turned[col * k + l] = static_cast<float>(b[l * b_row_stride + col]);
}

template <typename T>
__global__ void rows_by_rows(const T* a, const float* turned, T* c, int64_t m, int64_t n, int64_t k,
                             int64_t a_row_stride, int64_t c_row_stride) {
  const int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  const T* left = a + row * a_row_stride;
  const float* right = turned + col * k;
  // Two running sums, for the even and the odd places.
  float even = 0.0f, odd = 0.0f;
  int64_t l = 0;
  for (; l + 1 < k; l += 2) {
    even = fmaf(static_cast<float>(left[l]), right[l], even);
    odd = fmaf(static_cast<float>(left[l + 1]), right[l + 1], odd);
  }
  if (l < k) even = fmaf(static_cast<float>(left[l]), right[l], even);
  c[row * c_row_stride + col] = static_cast<T>(even + odd);
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  float* turned = nullptr;
  if (cudaMalloc(&turned, sizeof(float) * n * k) != cudaSuccess) return;
  const dim3 threads(16, 16);
  const dim3 over_b(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((k + 15) / 16));
  const dim3 over_c(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((m + 15) / 16));
  turn<T><<<over_b, threads, 0, stream>>>(b, turned, n, k, b_row_stride);
  rows_by_rows<T><<<over_c, threads, 0, stream>>>(a, turned, c, m, n, k, a_row_stride, c_row_stride);
  // The scratch must live until the second kernel has ended.
  cudaStreamSynchronize(stream);
  cudaFree(turned);
}
