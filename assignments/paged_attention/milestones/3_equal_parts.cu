// Paged attention, third milestone: every sequence's keys in as many equal parts, merged by a second kernel.
//
// A long sequence now keeps many blocks busy. With lengths that differ the longest sequence still has the largest parts, and a
// block loads nothing while it computes.
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
           float* part_out, float* part_lse, int parts, int tiles_of_rows, int q_len, int q_heads, int kv_heads, int dim,
           int page_size, int window, float scale) {
  __shared__ Tiles<T> tiles;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int kv_head = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.y);
  const int tile = static_cast<int>(blockIdx.z) % tiles_of_rows, part = static_cast<int>(blockIdx.z) / tiles_of_rows;
  const int group = q_heads / kv_heads, rows = q_len * group, pages = indptr[sequence + 1] - indptr[sequence];
  const int kv_len = pages > 0 ? (pages - 1) * page_size + last_page_len[sequence] : 0;
  int start = window > 0 ? max(kv_len - q_len + 1 - window, 0) : 0;
  const int length = (kv_len - start + parts * KEYS - 1) / (parts * KEYS) * KEYS;
  start += part * length;
  const int end = min(start + length, kv_len);
  indices += indptr[sequence];
  // Where a row of this tile lies in q and in the answers, counted in rows.
  const auto place = [&](int row) {
    return (static_cast<int64_t>(sequence) * q_len + row / group) * q_heads + kv_head * group + row % group;
  };
  for (int i = threadIdx.x; i < ROWS * DIM; i += THREADS) {
    const int row = tile * ROWS + i / DIM, column = i % DIM;
    tiles.q[i / DIM][column] = row < rows && column < dim ? static_cast<float>(q[place(row) * dim + column]) : 0.0f;
  }
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
    const int64_t scratch = place(row) * parts + part;
    for (int i = 0; i < DIM / 32; ++i) {
      const int column = 32 * i + lane;
      if (column < dim) part_out[scratch * dim + column] = total[r] > 0.0f ? sums[r][i] / total[r] : 0.0f;
    }
    if (lane == 0) part_lse[scratch] = total[r] > 0.0f ? largest[r] + log2f(total[r]) : -INFINITY;
  }
}

// A block merges the parts of one row; a thread owns a column.
template <typename T>
__global__ void merge(const float* part_out, const float* part_lse, T* out, float* lse, int parts, int dim) {
  const int64_t row = blockIdx.x;
  const int column = static_cast<int>(threadIdx.x);
  if (column >= dim) return;
  float largest = -INFINITY, total = 0.0f, sum = 0.0f;
  for (int part = 0; part < parts; ++part) largest = fmaxf(largest, part_lse[row * parts + part]);
  const float subtracted = largest == -INFINITY ? 0.0f : largest;
  for (int part = 0; part < parts; ++part) {
    const float weight = exp2f(part_lse[row * parts + part] - subtracted);
    total += weight;
    sum += weight * part_out[(row * parts + part) * dim + column];
  }
  out[row * dim + column] = static_cast<T>(total > 0.0f ? sum / total : 0.0f);
  if (column == 0) lse[row] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  const int64_t tiles = (q_len * (q_heads / kv_heads) + ROWS - 1) / ROWS, rows = batch * q_len * q_heads;
  // Some 8 blocks for each multiprocessor of a large GPU; parts of one block of keys at least.
  int64_t parts = (1024 + batch * kv_heads * tiles - 1) / (batch * kv_heads * tiles);
  const int64_t most = (entries * page_size + KEYS * batch - 1) / (KEYS * batch);
  parts = parts < most ? parts : most;
  float* part_out = nullptr;
  if (cudaMallocAsync(&part_out, rows * parts * (dim + 1) * sizeof(float), stream) != cudaSuccess) return;
  float* part_lse = part_out + rows * parts * dim;
  const dim3 blocks(static_cast<unsigned>(kv_heads), static_cast<unsigned>(batch), static_cast<unsigned>(tiles * parts));
  attend<<<blocks, THREADS, 0, stream>>>(q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, part_out, part_lse,
                                         static_cast<int>(parts), static_cast<int>(tiles), static_cast<int>(q_len),
                                         static_cast<int>(q_heads), static_cast<int>(kv_heads), static_cast<int>(dim),
                                         static_cast<int>(page_size), static_cast<int>(window), scale * LOG2_E);
  merge<<<static_cast<unsigned>(rows), DIM, 0, stream>>>(part_out, part_lse, out, lse, static_cast<int>(parts),
                                                         static_cast<int>(dim));
  cudaFreeAsync(part_out, stream);
}
