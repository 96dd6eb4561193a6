// The slowest honest way: one thread computes a whole row of c, one element after another.
#include <cstdint>

template <typename T>
__global__ void matmul_rows(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                            int64_t b_row_stride, int64_t c_row_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= m) return;
  const T* a_row = a + row * a_row_stride;
  T* c_row = c + row * c_row_stride;
  for (int64_t col = 0; col < n; ++col) {
    float sum = 0.0f;
    for (int64_t l = 0; l < k; ++l) sum += static_cast<float>(a_row[l]) * static_cast<float>(b[l * b_row_stride + col]);
    c_row[col] = static_cast<T>(sum);
  }
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const int threads = 32;
  const unsigned blocks = static_cast<unsigned>((m + threads - 1) / threads);
  matmul_rows<T><<<blocks, threads, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
