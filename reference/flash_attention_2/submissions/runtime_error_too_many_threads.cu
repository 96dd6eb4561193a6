// Fails: no GPU has blocks of 2048 threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARPS = 64, DIM = 128;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, float* lse, int q_heads, int kv_heads, int64_t q_len,
                       int64_t kv_len, int dim, bool causal, float scale, int64_t q_row_stride, int64_t k_row_stride,
                       int64_t v_row_stride, int64_t out_row_stride) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, head = blockIdx.y;
  if (row >= q_len) return;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const T* mine = q + (head * q_len + row) * q_row_stride;
  const int64_t seen = causal ? min(row + 1 + kv_len - q_len, kv_len) : kv_len;
  float largest = -INFINITY, total = 0.0f, sums[DIM] = {};
  for (int64_t key = 0; key < seen; ++key) {
    const T* other = k + (kv_head * kv_len + key) * k_row_stride;
    const T* value = v + (kv_head * kv_len + key) * v_row_stride;
    float score = 0.0f;
    for (int column = 0; column < dim; ++column) {
      score += static_cast<float>(mine[column]) * static_cast<float>(other[column]);
    }
    const float larger = fmaxf(largest, score * scale), shrink = exp2f(largest - larger);
    const float p = exp2f(score * scale - larger);
    for (int column = 0; column < dim; ++column) {
      sums[column] = sums[column] * shrink + p * static_cast<float>(value[column]);
    }
    total = total * shrink + p;
    largest = larger;
  }
  for (int column = 0; column < dim; ++column) {
    const float answer = total > 0.0f ? sums[column] / total : 0.0f;
    out[(head * q_len + row) * out_row_stride + column] = static_cast<T>(answer);
  }
  lse[head * q_len + row] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((q_len + 32 * WARPS - 1) / (32 * WARPS)), static_cast<unsigned>(batch * q_heads));
  attend<<<blocks, 32 * WARPS, 0, stream>>>(q, k, v, out, lse, static_cast<int>(q_heads), static_cast<int>(kv_heads), q_len,
                                            kv_len, static_cast<int>(dim), causal != 0, scale * LOG2_E, q_row_stride,
                                            k_row_stride, v_row_stride, out_row_stride);
}
