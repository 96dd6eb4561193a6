// Paged attention, first milestone: a warp for each row of q, which walks over its sequence 32 keys at a time.
//
// Lanes share the keys while scores are computed, and read rows that lie apart; then they share the columns. The query heads
// of a group read the same keys, each for itself.
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
__global__ void attend(const T* q, const T* k, const T* v, const int32_t* indptr, const int32_t* indices,
                       const int32_t* last_page_len, T* out, float* lse, int64_t rows, int q_len, int q_heads,
                       int kv_heads, int dim, int page_size, int window, float scale) {
  __shared__ float rows_of_q[WARPS][DIM], probabilities[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + warp;
  if (row >= rows) return;
  const int head = static_cast<int>(row % q_heads), query = static_cast<int>(row / q_heads % q_len);
  const int kv_head = head / (q_heads / kv_heads);
  const int64_t sequence = row / q_heads / q_len;
  const int pages = indptr[sequence + 1] - indptr[sequence];
  const int kv_len = pages > 0 ? (pages - 1) * page_size + last_page_len[sequence] : 0;
  const int end = max(kv_len - q_len + query + 1, 0), start = window > 0 ? max(end - window, 0) : 0;
  indices += indptr[sequence];
  // Where a key begins in the cache.
  const auto place = [&](int key) {
    const int64_t slot = static_cast<int64_t>(indices[key / page_size]) * page_size + key % page_size;
    return (slot * kv_heads + kv_head) * dim;
  };
  for (int column = lane; column < dim; column += 32) rows_of_q[warp][column] = static_cast<float>(q[row * dim + column]);
  __syncwarp();
  float largest = -INFINITY, total = 0.0f, sums[DIM / 32] = {};
  for (int first = start; first < end; first += 32) {
    const int count = min(end - first, 32);
    float score = -INFINITY;
    if (lane < count) {
      score = 0.0f;
      const T* key = k + place(first + lane);
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
    for (int i = 0; i < DIM / 32; ++i) sums[i] *= shrink;
    for (int key = 0; key < count; ++key) {
      const T* value = v + place(first + key);
      for (int i = 0; i < DIM / 32; ++i) {
        const int column = 32 * i + lane;
        if (column < dim) sums[i] += probabilities[warp][key] * static_cast<float>(value[column]);
      }
    }
    __syncwarp();
  }
  for (int i = 0; i < DIM / 32; ++i) {
    const int column = 32 * i + lane;
    if (column < dim) out[row * dim + column] = static_cast<T>(total > 0.0f ? sums[i] / total : 0.0f);
  }
  if (lane == 0) lse[row] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  const int64_t rows = batch * q_len * q_heads;
  attend<<<static_cast<unsigned>((rows + WARPS - 1) / WARPS), 32 * WARPS, 0, stream>>>(
      q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, out, lse, rows, static_cast<int>(q_len),
      static_cast<int>(q_heads), static_cast<int>(kv_heads), static_cast<int>(dim), static_cast<int>(page_size),
      static_cast<int>(window), scale * LOG2_E);
}
