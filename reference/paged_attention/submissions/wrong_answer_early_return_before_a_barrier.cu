// Wrong: warps without a row return before they have loaded their share of the keys and values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARPS = 4, THREADS = 32 * WARPS, DIM = 128;
constexpr int ROWS = 8, OWN = ROWS / WARPS, KEYS = 32;  // A warp has two rows; a lane has one key.
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
struct Tiles {
  alignas(16) T k[KEYS][DIM + 8], v[KEYS][DIM];
  float q[ROWS][DIM], probabilities[ROWS][KEYS];
};

template <typename T>
__global__ void __launch_bounds__(THREADS)
    attend(const T* q, const T* k, const T* v, const int32_t* indptr, const int32_t* indices, const int32_t* last_page_len,
           T* out, float* lse, int q_len, int q_heads, int kv_heads, int dim, int page_size, int window, float scale) {
  __shared__ Tiles<T> tiles;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int kv_head = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.y), tile = static_cast<int>(blockIdx.z);
  const int group = q_heads / kv_heads, rows = q_len * group, pages = indptr[sequence + 1] - indptr[sequence];
  const int kv_len = pages > 0 ? (pages - 1) * page_size + last_page_len[sequence] : 0;
  const int start = window > 0 ? max(kv_len - q_len + 1 - window, 0) : 0, end = kv_len;
  indices += indptr[sequence];
  // Where a row of this tile lies in q and in the answers, counted in rows.
  const auto place = [&](int row) {
    return (static_cast<int64_t>(sequence) * q_len + row / group) * q_heads + kv_head * group + row % group;
  };
  for (int i = threadIdx.x; i < ROWS * DIM; i += THREADS) {
    const int row = tile * ROWS + i / DIM, column = i % DIM;
    tiles.q[i / DIM][column] = row < rows && column < dim ? static_cast<float>(q[place(row) * dim + column]) : 0.0f;
  }
  if (tile * ROWS + warp * OWN >= rows) return;
  float largest[OWN], total[OWN] = {}, sums[OWN][DIM / 32] = {};
  for (int r = 0; r < OWN; ++r) largest[r] = -INFINITY;
  for (int first = start; first < end; first += KEYS) {
    const int count = min(end - first, KEYS);
    __syncthreads();
    for (int i = threadIdx.x; i < KEYS * DIM; i += THREADS) {
      const int row = i / DIM, column = i % DIM, key = first + row;
      const bool there = row < count && column < dim;
      int64_t from = 0;
      if (there) {
        const int64_t slot = static_cast<int64_t>(indices[key / page_size]) * page_size + key % page_size;
        from = (slot * kv_heads + kv_head) * dim + column;
      }
      tiles.k[row][column] = there ? k[from] : static_cast<T>(0.0f);
      tiles.v[row][column] = there ? v[from] : static_cast<T>(0.0f);
    }
    __syncthreads();
    for (int r = 0; r < OWN; ++r) {
      const int within = warp * OWN + r, row = tile * ROWS + within, last = kv_len - q_len + row / group;
      const int key = first + lane;
      float score = 0.0f;
      for (int column = 0; column < dim; ++column) score += tiles.q[within][column] * static_cast<float>(tiles.k[lane][column]);
      const bool seen = row < rows && lane < count && key <= last && (window == 0 || key > last - window);
      score = seen ? score * scale : -INFINITY;
      const float larger = fmaxf(largest[r], largest_of_warp(score)), subtracted = larger == -INFINITY ? 0.0f : larger;
      const float shrink = exp2f(largest[r] - subtracted), p = exp2f(score - subtracted);
      total[r] = total[r] * shrink + sum_of_warp(p);
      largest[r] = larger;
      tiles.probabilities[within][lane] = p;
      __syncwarp();
      for (int i = 0; i < DIM / 32; ++i) {
        float sum = 0.0f;
        for (int j = 0; j < count; ++j) sum += tiles.probabilities[within][j] * static_cast<float>(tiles.v[j][32 * i + lane]);
        sums[r][i] = sums[r][i] * shrink + sum;
      }
    }
  }
  for (int r = 0; r < OWN; ++r) {
    const int row = tile * ROWS + warp * OWN + r;
    if (row >= rows) continue;
    for (int i = 0; i < DIM / 32; ++i) {
      const int column = 32 * i + lane;
      const float answer = total[r] > 0.0f ? sums[r][i] / total[r] : 0.0f;
      if (column < dim) out[place(row) * dim + column] = static_cast<T>(answer);
    }
    if (lane == 0) lse[place(row)] = total[r] > 0.0f ? (largest[r] + log2f(total[r])) * LN_2 : -INFINITY;
  }
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  const int64_t tiles = (q_len * (q_heads / kv_heads) + ROWS - 1) / ROWS;
  const dim3 blocks(static_cast<unsigned>(kv_heads), static_cast<unsigned>(batch), static_cast<unsigned>(tiles));
  attend<<<blocks, THREADS, 0, stream>>>(q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, out, lse,
                                         static_cast<int>(q_len), static_cast<int>(q_heads), static_cast<int>(kv_heads),
                                         static_cast<int>(dim), static_cast<int>(page_size), static_cast<int>(window),
                                         scale * LOG2_E);
}
