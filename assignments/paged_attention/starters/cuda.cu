// Paged attention: a warp for each row of q. Lanes share the keys while scores are computed, then the columns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARPS = 4, DIM = 128;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, const int32_t* indptr, const int32_t* indices,
                       const int32_t* last_page_len, T* out, float* lse, int64_t rows, int q_len, int q_heads,
                       int kv_heads, int dim, int page_size, int window, float scale) {
  __shared__ float rows_of_q[WARPS][DIM], probabilities[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS + warp;
  if (row >= rows) return;
  const int head = static_cast<int>(row % q_heads), query = static_cast<int>(row / q_heads % q_len);
  const int kv_head = head / (q_heads / kv_heads);  // A group of query heads shares a key head.
  const int64_t sequence = row / q_heads / q_len;
  const int start = indptr[sequence], pages = indptr[sequence + 1] - start;
  for (int column = lane; column < dim; column += 32) rows_of_q[warp][column] = static_cast<float>(q[row * dim + column]);
  __syncwarp();

  // Your part: this looks at 32 keys of the first page at most, as if it were full, and lets every row see them. Walk over all
  // keys of the sequence, with an online softmax; the last page has last_page_len keys, and a sequence may have no page. Then
  // the later queries of a chunk, and `window`.
  const int64_t page = pages > 0 ? indices[start] : 0;
  const int count = min(page_size, 32);
  const auto place = [&](int slot) { return ((page * page_size + slot) * kv_heads + kv_head) * dim; };
  float score = -INFINITY;
  if (lane < count) {
    score = 0.0f;
    for (int column = 0; column < dim; ++column) {
      score += rows_of_q[warp][column] * static_cast<float>(k[place(lane) + column]);
    }
    score *= scale;
  }
  float largest = score;
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  const float p = exp2f(score - largest);
  float total = p;
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  probabilities[warp][lane] = p;
  __syncwarp();
  for (int column = lane; column < dim; column += 32) {
    float sum = 0.0f;
    for (int key = 0; key < count; ++key) sum += probabilities[warp][key] * static_cast<float>(v[place(key) + column]);
    out[row * dim + column] = static_cast<T>(sum / total);
  }
  if (lane == 0) lse[row] = (largest + log2f(total)) * LN_2;
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's tensors.
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
