// Quantised GEMM: out = (a * b^T) * a_scale * b_scale, of int8 factors, summed exactly.
#include <cstdint>

// One thread for each element of out.
__global__ void gemm_kernel(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m,
                            int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  // Your part: a float holds integers up to 2^24 only. And four products at once, then tensor cores.
  float total = 0.0f;
  for (int64_t l = 0; l < k; ++l) total += static_cast<float>(a[row * a_row_stride + l] * b[column * b_row_stride + l]);
  // Your part: what does a 1 in this row and this column stand for?
  out[row * out_row_stride + column] = total;
}

// The judge calls this function, on the host, with pointers to memory of the GPU.
void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 block(16, 16);
  const dim3 grid(static_cast<unsigned>((n + 15) / 16), static_cast<unsigned>((m + 15) / 16));
  gemm_kernel<<<grid, block, 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride);
}
