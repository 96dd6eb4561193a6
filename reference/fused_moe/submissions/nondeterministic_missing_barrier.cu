// Wrong: a slice in shared memory is filled anew before all threads are done with it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// The number of larger logits, or equal ones that stand before, is an expert's place in the token's order: a thread for each.
__global__ void rank_kernel(const float* logits, int32_t* chosen, int64_t tokens, int experts, int top) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= tokens * experts) return;
  const int64_t token = at / experts;
  const int mine = static_cast<int>(at % experts);
  int place = 0;
  for (int other = 0; other < experts; ++other) {
    const float theirs = logits[token * experts + other];
    place += theirs > logits[at] || (theirs == logits[at] && other < mine);
  }
  if (place < top) chosen[token * top + place] = mine;
}

constexpr int THREADS = 128, ROWS = 8, WIDTH = 64;

// Rows of an expert by a block: the tokens' numbers are sought in the list of choices anew by each block.
template <typename T>
__device__ int find_rows(const int32_t* chosen, int64_t pairs, int expert, int first, int32_t* rows) {
  __shared__ int counts[THREADS];
  // Every thread looks at neighbouring pairs, so that rows are found in their order.
  const int64_t each = (pairs + THREADS - 1) / THREADS, from = threadIdx.x * each, to = min(from + each, pairs);
  int mine = 0;
  for (int64_t i = from; i < to; ++i) mine += chosen[i] == expert;
  counts[threadIdx.x] = mine;
  __syncthreads();
  int place = -first, all = 0;
  for (int i = 0; i < THREADS; ++i) {
    if (i < threadIdx.x) place += counts[i];
    all += counts[i];
  }
  for (int64_t i = from; i < to; ++i) {
    if (chosen[i] != expert) continue;
    if (place >= 0 && place < ROWS) rows[place] = static_cast<int32_t>(i);
    ++place;
  }
  __syncthreads();
  return min(all - first, ROWS);
}

// sums[r] += row r of a · row `row` of b, through shared memory; `divide` makes pairs of a's rows.
template <typename T>
__device__ void add_products(float (&sums)[ROWS], const T* a, const int32_t* rows, int count, int divide, const T* b, bool there, int k) {
  __shared__ float slice[ROWS][WIDTH];
  for (int start = 0; start < k; start += WIDTH) {
    for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS) {
      const int r = i / WIDTH, l = start + i % WIDTH;
      slice[r][i % WIDTH] = r < count && l < k ? static_cast<float>(a[static_cast<int64_t>(rows[r] / divide) * k + l]) : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < WIDTH && start + l < k && there; ++l) {
      const float of_b = static_cast<float>(b[start + l]);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) sums[r] += slice[r][l] * of_b;
    }
  }
}

template <typename T>
__global__ void up_kernel(const T* x, const T* gate_up, const int32_t* chosen, T* y, int64_t pairs, int top, int hidden, int inner) {
  __shared__ int32_t rows[ROWS];
  const int expert = blockIdx.z, column = blockIdx.x * THREADS + threadIdx.x;
  const int count = find_rows<T>(chosen, pairs, expert, blockIdx.y * ROWS, rows);
  if (count <= 0) return;
  const bool there = column < inner;
  const T* const own = gate_up + (static_cast<int64_t>(expert) * 2 * inner + column) * hidden;
  float gates[ROWS] = {}, values[ROWS] = {};
  add_products(gates, x, rows, count, top, own, there, hidden);
  add_products(values, x, rows, count, top, own + static_cast<int64_t>(inner) * hidden, there, hidden);
  for (int r = 0; r < count && there; ++r) {
    y[static_cast<int64_t>(rows[r]) * inner + column] = static_cast<T>(gates[r] / (1.0f + expf(-gates[r])) * values[r]);
  }
}

template <typename T>
__global__ void down_kernel(const T* y, const T* down, const int32_t* chosen, float* parts, int64_t pairs, int hidden, int inner) {
  __shared__ int32_t rows[ROWS];
  const int expert = blockIdx.z, column = blockIdx.x * THREADS + threadIdx.x;
  const int count = find_rows<T>(chosen, pairs, expert, blockIdx.y * ROWS, rows);
  if (count <= 0) return;
  const bool there = column < hidden;
  float sums[ROWS] = {};
  add_products(sums, y, rows, count, 1, down + (static_cast<int64_t>(expert) * hidden + column) * inner, there, inner);
  for (int r = 0; r < count && there; ++r) parts[static_cast<int64_t>(rows[r]) * hidden + column] = sums[r];
}

template <typename T>
__global__ void mix_kernel(const float* parts, const float* logits, const int32_t* chosen, T* out, int experts, int top, int hidden) {
  const int64_t token = blockIdx.x;
  for (int column = threadIdx.x; column < hidden; column += THREADS) {
    float total = 0.0f, sum = 0.0f;
    for (int j = 0; j < top; ++j) {
      const float power = expf(logits[token * experts + chosen[token * top + j]] - logits[token * experts + chosen[token * top]]);
      total += power;
      sum += power * parts[(token * top + j) * hidden + column];
    }
    out[token * hidden + column] = static_cast<T>(sum / total);
  }
}

template <typename T>
void fused_moe(const T* x, const float* logits, const T* gate_up, const T* down, int32_t* chosen, T* out, int64_t tokens,
               int64_t experts, int64_t top, int64_t hidden, int64_t inner, cudaStream_t stream) {
  const int64_t pairs = tokens * top;
  T* y = nullptr;
  float* parts = nullptr;
  if (cudaMallocAsync(&y, pairs * inner * sizeof(T), stream) != cudaSuccess) return;
  if (cudaMallocAsync(&parts, pairs * hidden * sizeof(float), stream) != cudaSuccess) return;
  const auto blocks = [](int64_t size, int64_t part) { return static_cast<unsigned>((size + part - 1) / part); };
  const int e = static_cast<int>(experts), t = static_cast<int>(top), h = static_cast<int>(hidden), i = static_cast<int>(inner);
  rank_kernel<<<blocks(tokens * experts, 128), 128, 0, stream>>>(logits, chosen, tokens, e, t);
  up_kernel<<<dim3(blocks(inner, THREADS), blocks(tokens, ROWS), e), THREADS, 0, stream>>>(x, gate_up, chosen, y, pairs, t, h, i);
  down_kernel<<<dim3(blocks(hidden, THREADS), blocks(tokens, ROWS), e), THREADS, 0, stream>>>(y, down, chosen, parts, pairs, h, i);
  mix_kernel<<<static_cast<unsigned>(tokens), THREADS, 0, stream>>>(parts, logits, chosen, out, e, t, h);
  cudaFreeAsync(y, stream);
  cudaFreeAsync(parts, stream);
}
