// Wrong: all of K is summed in float32, which holds integers up to 2^24 only.
#include <cstdint>

__global__ void dot_kernel(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m,
                           int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride) {
  const int64_t i = blockIdx.y, j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) return;
  float sum = 0.0f;
  for (int64_t l = 0; l < k; ++l) {
    sum += static_cast<float>(a[i * a_row_stride + l]) * static_cast<float>(b[j * b_row_stride + l]);
  }
  out[i * out_row_stride + j] = sum * a_scale[i] * b_scale[j];
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + 127) / 128), static_cast<unsigned>(m));
  dot_kernel<<<grid, 128, 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride);
}
