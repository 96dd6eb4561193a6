// Quantised GEMM, first milestone: a thread for each sum, two bytes and one product at a time, without tensor cores.
#include <cstdint>

__global__ void gemm_kernel(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m,
                            int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  int sum = 0;
  for (int64_t l = 0; l < k; ++l) sum += a[row * a_row_stride + l] * b[column * b_row_stride + l];
  out[row * out_row_stride + column] = static_cast<float>(sum) * a_scale[row] * b_scale[column];
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 block(16, 16);
  const dim3 grid(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((m + 15) / 16));
  gemm_kernel<<<grid, block, 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride);
}
