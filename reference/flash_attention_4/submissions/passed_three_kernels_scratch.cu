// Right: three kernels, with all scores in memory between them; what the rung is there to avoid.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 64;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

template <typename T>
struct Rows {
  T* start;
  int64_t count, stride;

  __device__ T* head(int64_t number) const { return start + number * count * stride; }
};

// A block per row of q: scores of all keys that it sees, in the scratch, and their largest.
template <typename T>
__global__ void scores(Rows<const T> q, Rows<const T> k, float* scratch, int q_heads, int kv_heads, int dim, bool causal,
                       float scale) {
  const int64_t row = blockIdx.x, head = blockIdx.y;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const T* mine = q.head(head) + row * q.stride;
  float* into = scratch + (head * q.count + row) * k.count;
  for (int64_t key = threadIdx.x; key < k.count; key += THREADS) {
    const T* other = k.head(kv_head) + key * k.stride;
    float score = 0.0f;
    for (int column = 0; column < dim; ++column) {
      score += static_cast<float>(mine[column]) * static_cast<float>(other[column]);
    }
    into[key] = causal && key > row + k.count - q.count ? -INFINITY : score * scale;
  }
}

// A thread per row: its scores become probabilities.
__global__ void normalise(float* scratch, float* lse, float* row_max, int64_t rows, int64_t keys) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (row >= rows) return;
  float* mine = scratch + row * keys;
  float largest = -INFINITY, total = 0.0f;
  for (int64_t key = 0; key < keys; ++key) largest = mine[key] > largest + 8.0f ? mine[key] : largest;
  const float subtracted = largest == -INFINITY ? 0.0f : largest;
  for (int64_t key = 0; key < keys; ++key) total += exp2f(mine[key] - subtracted);
  for (int64_t key = 0; key < keys; ++key) mine[key] = total > 0.0f ? exp2f(mine[key] - subtracted) / total : 0.0f;
  lse[row] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
  row_max[row] = largest;
}

// A block per row: the values, weighed.
template <typename T>
__global__ void weigh(const float* scratch, Rows<const T> v, Rows<T> out, int q_heads, int kv_heads, int dim) {
  const int64_t row = blockIdx.x, head = blockIdx.y;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const float* mine = scratch + (head * out.count + row) * v.count;
  for (int column = threadIdx.x; column < dim; column += THREADS) {
    float sum = 0.0f;
    for (int64_t key = 0; key < v.count; ++key) {
      sum += mine[key] * static_cast<float>(v.head(kv_head)[key * v.stride + column]);
    }
    out.head(head)[row * out.stride + column] = static_cast<T>(sum);
  }
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, float* row_max, int64_t batch, int64_t q_heads,
               int64_t kv_heads, int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale,
               int64_t q_row_stride, int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const int64_t rows = batch * q_heads * q_len;
  float* scratch = nullptr;
  if (cudaMalloc(&scratch, rows * kv_len * sizeof(float)) != cudaSuccess) return;
  const dim3 blocks(static_cast<unsigned>(q_len), static_cast<unsigned>(batch * q_heads));
  const int heads = static_cast<int>(q_heads), groups = static_cast<int>(kv_heads), width = static_cast<int>(dim);
  const Rows<const T> queries = {q, q_len, q_row_stride}, keys = {k, kv_len, k_row_stride};
  const Rows<const T> values = {v, kv_len, v_row_stride};
  scores<<<blocks, THREADS, 0, stream>>>(queries, keys, scratch, heads, groups, width, causal != 0, scale * LOG2_E);
  normalise<<<static_cast<unsigned>((rows + THREADS - 1) / THREADS), THREADS, 0, stream>>>(scratch, lse, row_max, rows, kv_len);
  weigh<<<blocks, THREADS, 0, stream>>>(scratch, values, Rows<T>{out, q_len, out_row_stride}, heads, groups, width);
  cudaFree(scratch);
}
