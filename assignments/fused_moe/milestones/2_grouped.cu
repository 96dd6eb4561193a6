// One launch for all experts' products: tiles 64 x 64 of any expert run side by side. Nothing is loaded ahead.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <cstdint>

using namespace nvcuda;

constexpr int THREADS = 128;  // Four warps, each with 16 rows of a tile.
constexpr int TILE = 64, SLICE = 32, STEP = SLICE + 8;

// One thread for each token.
__global__ void route_kernel(const float* logits, int32_t* chosen, float* weights, int64_t tokens, int experts, int top) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (token >= tokens) return;
  const float* own = logits + token * experts;
  int32_t* found = chosen + token * top;
  float total = 0.0f;
  for (int j = 0; j < top; ++j) {
    int best = -1;
    for (int e = 0; e < experts; ++e) {
      bool is_taken = false;
      for (int i = 0; i < j; ++i) is_taken |= found[i] == e;
      if (!is_taken && (best < 0 || own[e] > own[best])) best = e;
    }
    found[j] = best;
    total += expf(own[best] - own[found[0]]);
  }
  for (int j = 0; j < top; ++j) weights[token * top + j] = expf(own[found[j]] - own[found[0]]) / total;
}

// The pairs of one expert, by one warp; the list has room for all tokens, as none goes to an expert twice.
__global__ void list_kernel(const int32_t* chosen, int32_t* lists, int32_t* counts, int64_t pairs, int64_t tokens) {
  const int expert = blockIdx.x, lane = threadIdx.x;
  int count = 0;
  for (int64_t start = 0; start < pairs; start += 32) {
    const bool is_mine = start + lane < pairs && chosen[start + lane] == expert;
    const unsigned all = __ballot_sync(~0u, is_mine);
    if (is_mine) lists[expert * tokens + count + __popc(all & ((1u << lane) - 1))] = static_cast<int32_t>(start + lane);
    count += __popc(all);
  }
  if (lane == 0) counts[expert] = count;
}

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Adds a tile's product: rows of `a` by their numbers, 64 neighbouring rows of `b`.
template <typename T>
__device__ void add_product(Sums (&sums)[4], const T* a, const int64_t* rows, const T* b, int64_t first, int64_t b_rows, int k) {
  __shared__ alignas(32) T left[TILE * STEP], right[TILE * STEP];
  const int warp = threadIdx.x / 32;
  for (int start = 0; start < k; start += SLICE) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += THREADS) {
      const int r = i / SLICE, l = i % SLICE;
      left[r * STEP + l] = rows[r] >= 0 && start + l < k ? a[rows[r] * k + start + l] : static_cast<T>(0.0f);
      right[r * STEP + l] = first + r < b_rows && start + l < k ? b[(first + r) * k + start + l] : static_cast<T>(0.0f);
    }
    __syncthreads();
    for (int l = 0; l < SLICE; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> of_rows;
      wmma::load_matrix_sync(of_rows, left + 16 * warp * STEP + l, STEP);
      for (int j = 0; j < 4; ++j) {
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> of_columns;
        wmma::load_matrix_sync(of_columns, right + 16 * j * STEP + l, STEP);
        wmma::mma_sync(sums[j], of_rows, of_columns, sums[j]);
      }
    }
    __syncthreads();
  }
}

__device__ void store(const Sums (&sums)[4], float (*floats)[TILE]) {
  for (int j = 0; j < 4; ++j) wmma::store_matrix_sync(&floats[threadIdx.x / 32 * 16][16 * j], sums[j], TILE, wmma::mem_row_major);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    up_kernel(const T* x, const T* of_all, const int32_t* lists, const int32_t* counts, T* y, int64_t tokens, int top, int hidden,
              int inner) {
  __shared__ alignas(32) float gates[TILE][TILE];
  __shared__ alignas(32) float values[TILE][TILE];
  __shared__ int64_t rows[TILE];
  const int first_row = blockIdx.x * TILE, first_column = blockIdx.y * TILE;
  const int64_t expert = blockIdx.z;
  const int32_t* const list = lists + expert * tokens;
  const T* const gate_up = of_all + expert * 2 * inner * hidden;
  if (first_row >= counts[expert]) return;
  for (int r = threadIdx.x; r < TILE; r += THREADS) rows[r] = first_row + r < counts[expert] ? list[first_row + r] / top : -1;
  __syncthreads();
  Sums sums[4];
  for (auto& sum : sums) wmma::fill_fragment(sum, 0.0f);
  add_product(sums, x, rows, gate_up, first_column, inner, hidden);
  store(sums, gates);
  for (auto& sum : sums) wmma::fill_fragment(sum, 0.0f);
  add_product(sums, x, rows, gate_up + static_cast<int64_t>(inner) * hidden, first_column, inner, hidden);
  store(sums, values);
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int r = i / TILE, c = i % TILE;
    if (rows[r] < 0 || first_column + c >= inner) continue;
    const float gate = gates[r][c];
    y[static_cast<int64_t>(list[first_row + r]) * inner + first_column + c] = static_cast<T>(gate / (1.0f + expf(-gate)) * values[r][c]);
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    down_kernel(const T* y, const T* of_all, const int32_t* lists, const int32_t* counts, const float* weights, float* parts,
                int64_t tokens, int hidden, int inner) {
  __shared__ alignas(32) float floats[TILE][TILE];
  __shared__ int64_t rows[TILE];
  const int first_row = blockIdx.x * TILE, first_column = blockIdx.y * TILE;
  const int64_t expert = blockIdx.z;
  const int32_t* const list = lists + expert * tokens;
  const T* const down = of_all + expert * hidden * inner;
  if (first_row >= counts[expert]) return;
  for (int r = threadIdx.x; r < TILE; r += THREADS) rows[r] = first_row + r < counts[expert] ? list[first_row + r] : -1;
  __syncthreads();
  Sums sums[4];
  for (auto& sum : sums) wmma::fill_fragment(sum, 0.0f);
  add_product(sums, y, rows, down, first_column, hidden, inner);
  store(sums, floats);
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int r = i / TILE, c = i % TILE;
    if (rows[r] >= 0 && first_column + c < hidden) parts[rows[r] * hidden + first_column + c] = weights[rows[r]] * floats[r][c];
  }
}

template <typename T>
__global__ void combine_kernel(const float* parts, T* out, int64_t tokens, int top, int hidden) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= tokens * hidden) return;
  float total = 0.0f;
  for (int j = 0; j < top; ++j) total += parts[(at / hidden * top + j) * hidden + at % hidden];
  out[at] = static_cast<T>(total);
}

template <typename T>
void fused_moe(const T* x, const float* logits, const T* gate_up, const T* down, int32_t* chosen, T* out, int64_t tokens,
               int64_t experts, int64_t top, int64_t hidden, int64_t inner, cudaStream_t stream) {
  const int64_t pairs = tokens * top;
  float *weights = nullptr, *parts = nullptr;
  int32_t *lists = nullptr, *counts = nullptr;
  T* y = nullptr;
  if (cudaMallocAsync(&weights, pairs * 4, stream) != cudaSuccess) return;
  if (cudaMallocAsync(&parts, pairs * hidden * 4, stream) != cudaSuccess) return;
  if (cudaMallocAsync(&lists, experts * tokens * 4, stream) != cudaSuccess) return;
  if (cudaMallocAsync(&counts, experts * 4, stream) != cudaSuccess) return;
  if (cudaMallocAsync(&y, pairs * inner * sizeof(T), stream) != cudaSuccess) return;
  const auto blocks = [](int64_t size, int64_t part) { return static_cast<unsigned>((size + part - 1) / part); };
  const int e = static_cast<int>(experts), t = static_cast<int>(top), h = static_cast<int>(hidden), i = static_cast<int>(inner);
  route_kernel<<<blocks(tokens, THREADS), THREADS, 0, stream>>>(logits, chosen, weights, tokens, e, t);
  list_kernel<<<static_cast<unsigned>(experts), 32, 0, stream>>>(chosen, lists, counts, pairs, tokens);
  // Tiles for all tokens and every expert, as the host does not know where they go: most blocks end at once.
  const dim3 up(blocks(tokens, TILE), blocks(inner, TILE), static_cast<unsigned>(experts));
  const dim3 back(blocks(tokens, TILE), blocks(hidden, TILE), static_cast<unsigned>(experts));
  up_kernel<<<up, THREADS, 0, stream>>>(x, gate_up, lists, counts, y, tokens, t, h, i);
  down_kernel<<<back, THREADS, 0, stream>>>(y, down, lists, counts, weights, parts, tokens, h, i);
  combine_kernel<<<blocks(tokens * hidden, THREADS), THREADS, 0, stream>>>(parts, out, tokens, t, h);
  cudaFreeAsync(weights, stream);
  cudaFreeAsync(parts, stream);
  cudaFreeAsync(lists, stream);
  cudaFreeAsync(counts, stream);
  cudaFreeAsync(y, stream);
}
