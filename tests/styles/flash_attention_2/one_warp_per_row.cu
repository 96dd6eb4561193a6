// A warp for each row of q and no shared memory: every score is summed over the warp by shuffles, key after key.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

constexpr int kWarps = 4, kParts = 4;  // A lane has up to four columns: its number, and 32, 64 and 96 more.
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, float* lse, int64_t rows, int64_t q_heads,
                       int64_t kv_heads, int64_t q_len, int64_t kv_len, int dim, bool causal, float scale,
                       int64_t q_stride, int64_t k_stride, int64_t v_stride, int64_t out_stride) {
  const int lane = threadIdx.x % 32;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (number >= rows) return;
  const int64_t head = number / q_len, row = number % q_len;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const T* keys = k + kv_head * kv_len * k_stride;
  const T* values = v + kv_head * kv_len * v_stride;

  float mine[kParts], sums[kParts] = {};
  for (int i = 0; i < kParts; ++i) {
    const int column = lane + 32 * i;
    mine[i] = column < dim ? static_cast<float>(q[number * q_stride + column]) : 0.0f;
  }
  const int64_t seen = causal ? row + 1 + kv_len - q_len : kv_len;
  float largest = -INFINITY, total = 0.0f;
  for (int64_t key = 0; key < seen; ++key) {
    float score = 0.0f;
    for (int i = 0; i < kParts; ++i) {
      const int column = lane + 32 * i;
      if (column < dim) score = fmaf(mine[i], static_cast<float>(keys[key * k_stride + column]), score);
    }
    for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xffffffffu, score, step);
    // In base 2, with the scale and log2(e) in one factor.
    score *= scale;
    const float larger = fmaxf(largest, score);
    const float shrink = exp2f(largest - larger), p = exp2f(score - larger);
    total = total * shrink + p;
    for (int i = 0; i < kParts; ++i) {
      const int column = lane + 32 * i;
      if (column < dim) sums[i] = sums[i] * shrink + p * static_cast<float>(values[key * v_stride + column]);
    }
    largest = larger;
  }
  for (int i = 0; i < kParts; ++i) {
    const int column = lane + 32 * i;
    if (column < dim) out[number * out_stride + column] = static_cast<T>(total > 0.0f ? sums[i] / total : 0.0f);
  }
  if (lane == 0) lse[number] = total > 0.0f ? (largest + log2f(total)) * kLn2 : -INFINITY;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const int64_t rows = batch * q_heads * q_len;
  attend<T><<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), 32 * kWarps, 0, stream>>>(
      q, k, v, out, lse, rows, q_heads, kv_heads, q_len, kv_len, static_cast<int>(dim), causal != 0, scale * kLog2E,
      q_row_stride, k_row_stride, v_row_stride, out_row_stride);
}
