// Vectors for decoding: half a warp shares a key, eight columns a lane; warps of a block take keys in turn and meet at the end.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define WARPS 4
#define LANES 16
#define COLUMNS 8

struct State {
  float m, l, acc[COLUMNS];
};

__device__ inline void merge_states(State& a, float m, float l, const float* acc) {
  float larger = fmaxf(a.m, m);
  if (larger == -INFINITY) return;
  float wa = expf(a.m - larger), wb = expf(m - larger);
  a.m = larger;
  a.l = a.l * wa + l * wb;
  for (int c = 0; c < COLUMNS; c++) a.acc[c] = a.acc[c] * wa + acc[c] * wb;
}

template <typename T>
__device__ inline void load_columns(float* to, const T* row, int column, int dim, bool packed) {
  if (packed) {
    uint4 pack = *reinterpret_cast<const uint4*>(row + column);
    const T* values = reinterpret_cast<const T*>(&pack);
    for (int c = 0; c < COLUMNS; c++) to[c] = (float)values[c];
  } else {
    for (int c = 0; c < COLUMNS; c++) to[c] = column + c < dim ? (float)row[column + c] : 0.0f;
  }
}

// One block for each row of q.
template <typename T>
__global__ void decode_row(const T* q, const T* k, const T* v, const int32_t* indptr, const int32_t* indices,
                           const int32_t* last_page_len, T* out, float* lse, int q_len, int q_heads, int kv_heads, int dim,
                           int page_size, int window, float scale, bool aligned) {
  __shared__ float all_m[WARPS * 2], all_l[WARPS * 2], all_acc[WARPS * 2][LANES * COLUMNS];
  int64_t row = blockIdx.x;
  int head = row % q_heads, i = row / q_heads % q_len, b = row / q_heads / q_len;
  int kv_head = head / (q_heads / kv_heads);
  int first_page = indptr[b], pages = indptr[b + 1] - first_page;
  int length = pages == 0 ? 0 : (pages - 1) * page_size + last_page_len[b];
  int hi = length - q_len + i + 1, lo = window > 0 && hi > window ? hi - window : 0;
  int half = threadIdx.x / LANES, lane = threadIdx.x % LANES, column = lane * COLUMNS;
  bool packed = aligned && column < dim;

  float query[COLUMNS];
  for (int c = 0; c < COLUMNS; c++) query[c] = column + c < dim ? (float)q[row * dim + column + c] * scale : 0.0f;
  State state = {-INFINITY, 0.0f, {}};
  // Both halves of a warp go round as often: a shuffle needs all lanes.
  int rounds = hi > lo ? (hi - lo + 2 * WARPS - 1) / (2 * WARPS) : 0;
  for (int round = 0; round < rounds; round++) {
    int key = lo + round * 2 * WARPS + half;
    float keys[COLUMNS] = {}, values[COLUMNS] = {};
    if (key < hi) {
      int64_t slot = (int64_t)indices[first_page + key / page_size] * page_size + key % page_size;
      int64_t at = (slot * kv_heads + kv_head) * dim;
      load_columns(keys, k + at, column, dim, packed);
      load_columns(values, v + at, column, dim, packed);
    }
    float score = 0.0f;
    for (int c = 0; c < COLUMNS; c++) score += query[c] * keys[c];
    for (int o = LANES / 2; o > 0; o /= 2) score += __shfl_xor_sync(0xffffffff, score, o);
    if (key < hi) merge_states(state, score, 1.0f, values);
  }
  if (lane == 0) {
    all_m[half] = state.m;
    all_l[half] = state.l;
  }
  for (int c = 0; c < COLUMNS; c++) all_acc[half][column + c] = state.acc[c];
  __syncthreads();
  if (half > 0) return;
  for (int other = 1; other < 2 * WARPS; other++) merge_states(state, all_m[other], all_l[other], &all_acc[other][column]);
  for (int c = 0; c < COLUMNS; c++) {
    if (column + c < dim) out[row * dim + column + c] = (T)(state.l > 0.0f ? state.acc[c] / state.l : 0.0f);
  }
  if (lane == 0) lse[row] = state.l > 0.0f ? state.m + logf(state.l) : -INFINITY;
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int32_t* kv_indptr, const int32_t* kv_indices,
                     const int32_t* last_page_len, T* out, float* lse, int64_t batch, int64_t q_len, int64_t q_heads,
                     int64_t kv_heads, int64_t dim, int64_t page_size, int64_t entries, int64_t window, float scale,
                     cudaStream_t stream) {
  bool aligned = dim % COLUMNS == 0 && ((uintptr_t)k_cache | (uintptr_t)v_cache) % 16 == 0;
  decode_row<T><<<(unsigned)(batch * q_len * q_heads), WARPS * 32, 0, stream>>>(
      q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, out, lse, (int)q_len, (int)q_heads, (int)kv_heads,
      (int)dim, (int)page_size, (int)window, scale, aligned);
}
