// Fails: no GPU has blocks of 2048 threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, const int32_t* indptr, const int32_t* indices,
                       const int32_t* last_page_len, T* out, float* lse, int64_t rows, int64_t q_len, int64_t q_heads,
                       int64_t kv_heads, int64_t dim, int64_t page_size, int64_t window, float scale) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int64_t head = row % q_heads, query = row / q_heads % q_len, sequence = row / q_heads / q_len;
  const int64_t pages = indptr[sequence + 1] - indptr[sequence];
  const int64_t kv_len = pages > 0 ? (pages - 1) * page_size + last_page_len[sequence] : 0;
  const int64_t end = kv_len - q_len + query + 1, begin = window > 0 && end > window ? end - window : 0;
  float sums[128] = {}, largest = -INFINITY, total = 0.0f;
  for (int64_t key = begin; key < end; ++key) {
    const int64_t slot = indices[indptr[sequence] + key / page_size] * page_size + key % page_size;
    const int64_t place = (slot * kv_heads + head / (q_heads / kv_heads)) * dim;
    float score = 0.0f;
    for (int64_t c = 0; c < dim; ++c) score += static_cast<float>(q[row * dim + c]) * static_cast<float>(k[place + c]);
    score *= scale;
    const float larger = fmaxf(largest, score), shrink = expf(largest - larger), p = expf(score - larger);
    total = total * shrink + p;
    for (int64_t c = 0; c < dim; ++c) sums[c] = sums[c] * shrink + p * static_cast<float>(v[place + c]);
    largest = larger;
  }
  for (int64_t c = 0; c < dim; ++c) out[row * dim + c] = static_cast<T>(total > 0.0f ? sums[c] / total : 0.0f);
  lse[row] = total > 0.0f ? largest + logf(total) : -INFINITY;
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  const int64_t rows = batch * q_len * q_heads;
  attend<<<static_cast<unsigned>((rows + 2047) / 2048), 2048, 0, stream>>>(q, k_cache, v_cache, kv_indptr, kv_indices,
                                                                     last_page_len, out, lse, rows, q_len, q_heads, kv_heads,
                                                                     dim, page_size, window, scale);
}
