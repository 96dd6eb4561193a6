// Attention, first milestone: a warp per row of q, which walks over all keys without tensor cores.
//
// Every row reads all keys and values of its head again; lanes read keys that are a row apart.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARPS = 4, DIM = 128;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

__device__ float largest_of_warp(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

__device__ float sum_of_warp(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, float* lse, int q_heads, int kv_heads, int64_t q_len,
                       int64_t kv_len, int dim, bool causal, float scale, int64_t q_row_stride, int64_t k_row_stride,
                       int64_t v_row_stride, int64_t out_row_stride) {
  __shared__ float rows_of_q[WARPS][DIM], probabilities[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + warp, head = blockIdx.y;
  if (row >= q_len) return;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  q += (head * q_len + row) * q_row_stride;
  k += kv_head * kv_len * k_row_stride;
  v += kv_head * kv_len * v_row_stride;
  for (int column = lane; column < dim; column += 32) rows_of_q[warp][column] = static_cast<float>(q[column]);
  __syncwarp();
  const int64_t seen = causal ? max(static_cast<int64_t>(0), min(row + 1 + kv_len - q_len, kv_len)) : kv_len;
  float largest = -INFINITY, total = 0.0f, sums[DIM / 32] = {};
  for (int64_t first = 0; first < seen; first += 32) {
    const int count = static_cast<int>(min(seen - first, static_cast<int64_t>(32)));
    float score = -INFINITY;
    if (lane < count) {
      score = 0.0f;
      const T* key = k + (first + lane) * k_row_stride;
      for (int column = 0; column < dim; ++column) score += rows_of_q[warp][column] * static_cast<float>(key[column]);
      score *= scale;
    }
    // There is at least one key in a block: the largest is a number.
    const float larger = fmaxf(largest, largest_of_warp(score)), shrink = exp2f(largest - larger);
    const float p = exp2f(score - larger);
    total = total * shrink + sum_of_warp(p);
    largest = larger;
    probabilities[warp][lane] = p;
    __syncwarp();
    for (int i = 0; i < DIM / 32; ++i) {
      const int column = 32 * i + lane;
      if (column >= dim) continue;
      sums[i] *= shrink;
      for (int key = 0; key < count; ++key) {
        sums[i] += probabilities[warp][key] * static_cast<float>(v[(first + key) * v_row_stride + column]);
      }
    }
    __syncwarp();
  }
  for (int i = 0; i < DIM / 32; ++i) {
    const int column = 32 * i + lane;
    if (column < dim) {
      out[(head * q_len + row) * out_row_stride + column] = static_cast<T>(total > 0.0f ? sums[i] / total : 0.0f);
    }
  }
  if (lane == 0) lse[head * q_len + row] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((q_len + WARPS - 1) / WARPS), static_cast<unsigned>(batch * q_heads));
  attend<<<blocks, 32 * WARPS, 0, stream>>>(q, k, v, out, lse, static_cast<int>(q_heads), static_cast<int>(kv_heads), q_len,
                                            kv_len, static_cast<int>(dim), causal != 0, scale * LOG2_E, q_row_stride,
                                            k_row_stride, v_row_stride, out_row_stride);
}
