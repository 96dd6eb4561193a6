// Attention: a warp per row of q. Lanes share the keys while scores are computed, and the columns while values are added.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARPS = 4, DIM = 128;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, float* lse, int q_heads, int kv_heads, int64_t q_len,
                       int64_t kv_len, int dim, bool causal, float scale, int64_t q_row_stride, int64_t k_row_stride,
                       int64_t v_row_stride, int64_t out_row_stride) {
  __shared__ float rows_of_q[WARPS][DIM], probabilities[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + warp, head = blockIdx.y;
  if (row >= q_len) return;
  // A group of query heads shares a key head. Heads follow one another without a gap.
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  q += (head * q_len + row) * q_row_stride;
  k += kv_head * kv_len * k_row_stride;
  v += kv_head * kv_len * v_row_stride;
  for (int column = lane; column < dim; column += 32) rows_of_q[warp][column] = static_cast<float>(q[column]);
  __syncwarp();

  // Your part: this looks at the first 32 keys only, and lets every row see all of them. Walk over all keys; keep the
  // largest score and the sum of each row, and rescale what you have when the largest score grows. Then `causal`.
  float score = -INFINITY;
  if (lane < kv_len) {
    score = 0.0f;
    for (int column = 0; column < dim; ++column) {
      score += rows_of_q[warp][column] * static_cast<float>(k[lane * k_row_stride + column]);
    }
    score *= scale;
  }
  float largest = score, total;
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  const float p = exp2f(score - largest);
  total = p;
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  probabilities[warp][lane] = p;
  __syncwarp();
  for (int column = lane; column < dim; column += 32) {
    float sum = 0.0f;
    for (int key = 0; key < 32 && key < kv_len; ++key) {
      sum += probabilities[warp][key] * static_cast<float>(v[key * v_row_stride + column]);
    }
    out[(head * q_len + row) * out_row_stride + column] = static_cast<T>(sum / total);
  }
  if (lane == 0) lse[head * q_len + row] = (largest + log2f(total)) * LN_2;
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's tensors.
template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((q_len + WARPS - 1) / WARPS), static_cast<unsigned>(batch * q_heads));
  attend<<<blocks, 32 * WARPS, 0, stream>>>(q, k, v, out, lse, static_cast<int>(q_heads), static_cast<int>(kv_heads), q_len,
                                            kv_len, static_cast<int>(dim), causal != 0, scale * LOG2_E, q_row_stride,
                                            k_row_stride, v_row_stride, out_row_stride);
}
