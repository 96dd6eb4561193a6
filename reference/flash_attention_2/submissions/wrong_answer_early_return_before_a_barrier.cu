// Wrong: warps without rows return before they have loaded their share of the keys and values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int WARPS = 4, THREADS = 32 * WARPS, ROWS = 16 * WARPS, KEYS = 64, DIM = 128;
constexpr int STEP = DIM + 8, SCORE_STEP = KEYS + 4, SUM_STEP = DIM + 4, PROBABILITY_STEP = KEYS + 8;
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

template <typename T>
struct Tiles {
  alignas(32) T q[ROWS][STEP], k[KEYS][STEP], v[KEYS][STEP], probabilities[ROWS][PROBABILITY_STEP];
  alignas(32) float scores[ROWS][SCORE_STEP], sums[ROWS][SUM_STEP];
};

// Copy rows into a tile, one element at a time; zeros where there are none.
template <typename T, int COUNT>
__device__ void load_rows(T (&tile)[COUNT][STEP], const T* from, int64_t first, int64_t rows, int dim, int64_t stride) {
  for (int i = threadIdx.x; i < COUNT * DIM; i += THREADS) {
    const int row = i / DIM, column = i % DIM;
    const bool there = first + row < rows && column < dim;
    tile[row][column] = there ? from[(first + row) * stride + column] : static_cast<T>(0.0f);
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    attend(const T* q, const T* k, const T* v, T* out, float* lse, int q_heads, int kv_heads, int64_t q_len,
           int64_t kv_len, int dim, bool causal, float scale, int64_t q_row_stride, int64_t k_row_stride,
           int64_t v_row_stride, int64_t out_row_stride) {
  extern __shared__ __align__(32) unsigned char memory[];
  auto& tiles = *reinterpret_cast<Tiles<T>*>(memory);
  const int warp_row = threadIdx.x / 32 * 16, lane = threadIdx.x % 32, mine = warp_row + lane / 2;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * ROWS, row = first + mine, head = blockIdx.y;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const auto seen_by = [&](int64_t of) {
    return causal ? max(static_cast<int64_t>(0), min(of + 1 + kv_len - q_len, kv_len)) : kv_len;
  };
  const int64_t end = seen_by(min(first + ROWS, q_len) - 1), seen = seen_by(min(row, q_len - 1));
  if (first + warp_row >= q_len) return;
  load_rows(tiles.q, q + head * q_len * q_row_stride, first, q_len, dim, q_row_stride);
  // Two lanes for each row of a warp: one has the even columns, the other the odd ones.
  for (int column = lane % 2; column < DIM; column += 2) tiles.sums[mine][column] = 0.0f;
  float largest = -INFINITY, total = 0.0f;
  for (int64_t start = 0; start < end; start += KEYS) {
    __syncthreads();
    load_rows(tiles.k, k + kv_head * kv_len * k_row_stride, start, kv_len, dim, k_row_stride);
    load_rows(tiles.v, v + kv_head * kv_len * v_row_stride, start, kv_len, dim, v_row_stride);
    __syncthreads();
    for (int j = 0; j < KEYS; j += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> scores;
      wmma::fill_fragment(scores, 0.0f);
      for (int l = 0; l < DIM; l += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
        wmma::load_matrix_sync(left, &tiles.q[warp_row][l], STEP);
        wmma::load_matrix_sync(right, &tiles.k[j][l], STEP);
        wmma::mma_sync(scores, left, right, scores);
      }
      wmma::store_matrix_sync(&tiles.scores[warp_row][j], scores, SCORE_STEP, wmma::mem_row_major);
    }
    __syncwarp();
    float larger = largest;
    for (int j = lane % 2; j < KEYS; j += 2) {
      if (start + j < seen) larger = fmaxf(larger, tiles.scores[mine][j] * scale);
    }
    larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 1));
    const float subtracted = larger == -INFINITY ? 0.0f : larger, shrink = exp2f(largest - subtracted);
    float sum = 0.0f;
    for (int j = lane % 2; j < KEYS; j += 2) {
      const float p = start + j < seen ? exp2f(tiles.scores[mine][j] * scale - subtracted) : 0.0f;
      sum += p;
      tiles.probabilities[mine][j] = static_cast<T>(p);
    }
    total = total * shrink + sum + __shfl_xor_sync(0xffffffffu, sum, 1);
    largest = larger;
    for (int column = lane % 2; column < DIM; column += 2) tiles.sums[mine][column] *= shrink;
    __syncwarp();
    for (int column = 0; column < DIM; column += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
      wmma::load_matrix_sync(sums, &tiles.sums[warp_row][column], SUM_STEP, wmma::mem_row_major);
      for (int j = 0; j < KEYS; j += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
        wmma::load_matrix_sync(left, &tiles.probabilities[warp_row][j], PROBABILITY_STEP);
        wmma::load_matrix_sync(right, &tiles.v[j][column], STEP);
        wmma::mma_sync(sums, left, right, sums);
      }
      wmma::store_matrix_sync(&tiles.sums[warp_row][column], sums, SUM_STEP, wmma::mem_row_major);
    }
    __syncwarp();
  }
  if (row >= q_len) return;
  for (int column = lane % 2; column < dim; column += 2) {
    const float answer = total > 0.0f ? tiles.sums[mine][column] / total : 0.0f;
    out[(head * q_len + row) * out_row_stride + column] = static_cast<T>(answer);
  }
  if (lane % 2 == 0) lse[head * q_len + row] = total > 0.0f ? (largest + log2f(total)) * LN_2 : -INFINITY;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((q_len + ROWS - 1) / ROWS), static_cast<unsigned>(batch * q_heads));
  cudaFuncSetAttribute(attend<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Tiles<T>));
  attend<<<blocks, THREADS, sizeof(Tiles<T>), stream>>>(q, k, v, out, lse, static_cast<int>(q_heads),
                                                        static_cast<int>(kv_heads), q_len, kv_len, static_cast<int>(dim),
                                                        causal != 0, scale * LOG2_E, q_row_stride, k_row_stride,
                                                        v_row_stride, out_row_stride);
}
