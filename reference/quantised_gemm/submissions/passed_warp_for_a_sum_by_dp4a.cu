// Right: a warp for each sum, four bytes a lane and step by __dp4a, and a sum across the warp.
#include <cstdint>

// Four neighbours, fewer at the end of a row, zeros behind it.
__device__ int word_at(const int8_t* row, int64_t l, int64_t k) {
  char4 word = {0, 0, 0, 0};
  if (l < k) word.x = row[l];
  if (l + 1 < k) word.y = row[l + 1];
  if (l + 2 < k) word.z = row[l + 2];
  if (l + 3 < k) word.w = row[l + 3];
  return *reinterpret_cast<const int*>(&word);
}

__global__ void dot_kernel(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m,
                           int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride) {
  const int lane = threadIdx.x % 32;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32; at < m * n; at += warps) {
    const int64_t i = at / n, j = at % n;
    int sum = 0;
    for (int64_t l = 4 * lane; l < k; l += 128) {
      sum = __dp4a(word_at(a + i * a_row_stride, l, k), word_at(b + j * b_row_stride, l, k), sum);
    }
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) out[i * out_row_stride + j] = static_cast<float>(sum) * (a_scale[i] * b_scale[j]);
  }
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  dot_kernel<<<64, 256, 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride);
}
