// Honest: two kernels. K is split in two halves, each of which writes its sums to scratch memory; the second adds them up.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void half_of_k(const T* a, const T* b, float* sums, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
                          int64_t b_row_stride) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= m * n) return;
  const int64_t first = blockIdx.y * (k / 2), last = blockIdx.y == 0 ? k / 2 : k;
  float sum = 0.0f;
  for (int64_t l = first; l < last; ++l) {
    sum += static_cast<float>(a[element / n * a_row_stride + l]) * static_cast<float>(b[l * b_row_stride + element % n]);
  }
  sums[blockIdx.y * m * n + element] = sum;
}

template <typename T>
__global__ void add_halves(const float* sums, T* c, int64_t m, int64_t n, int64_t c_row_stride) {
  const int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element < m * n) c[element / n * c_row_stride + element % n] = static_cast<T>(sums[element] + sums[m * n + element]);
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  float* sums = nullptr;
  if (cudaMallocAsync(&sums, 2 * m * n * sizeof(float), stream) != cudaSuccess) return;
  const unsigned blocks = static_cast<unsigned>((m * n + 127) / 128);
  half_of_k<<<dim3(blocks, 2), 128, 0, stream>>>(a, b, sums, m, n, k, a_row_stride, b_row_stride);
  add_halves<<<blocks, 128, 0, stream>>>(sums, c, m, n, c_row_stride);
  cudaFreeAsync(sums, stream);
}
