// Online softmax between two wmma products; scores, probabilities and sums lie in dynamic shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cmath>
#include <cstdint>

using namespace nvcuda;

constexpr int kRows = 32, kKeys = 32, kDim = 128, kThreads = 64;
constexpr int kPitch = kDim + 8, kScorePitch = kKeys + 4, kProbPitch = kKeys + 8, kSumPitch = kDim + 4;

template <typename T>
struct Shared {
  alignas(32) T q[kRows * kPitch];
  alignas(32) T k[kKeys * kPitch];
  alignas(32) T v[kKeys * kPitch];
  alignas(32) T p[kRows * kProbPitch];
  alignas(32) float scores[kRows * kScorePitch];
  alignas(32) float sums[kRows * kSumPitch];
};

template <typename T>
__device__ void copy_rows(T* tile, int count, const T* from, int64_t first, int64_t rows, int dim, int64_t stride) {
  for (int i = threadIdx.x; i < count * kDim; i += kThreads) {
    const int64_t row = first + i / kDim;
    const int column = i % kDim;
    const bool there = row < rows && column < dim;
    tile[i / kDim * kPitch + column] = there ? from[row * stride + column] : static_cast<T>(0.0f);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attend(const T* q, const T* k, const T* v, T* out, float* lse, float* row_max, int64_t q_heads, int64_t kv_heads,
           int64_t q_len, int64_t kv_len, int dim, bool causal, float scale, int64_t q_stride, int64_t k_stride,
           int64_t v_stride, int64_t out_stride) {
  extern __shared__ __align__(32) unsigned char raw[];
  Shared<T>& s = *reinterpret_cast<Shared<T>*>(raw);
  const int warp = threadIdx.x / 32;
  // Two threads share a row: one has the even places, the other the odd ones. They are neighbours in a warp.
  const int line = threadIdx.x / 2, half = threadIdx.x % 2;
  const int64_t head = blockIdx.y, first = static_cast<int64_t>(blockIdx.x) * kRows, row = first + line;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const int64_t shift = kv_len - q_len;
  const int64_t seen = !causal ? kv_len : row < q_len ? row + 1 + shift : 0;
  const int64_t last_row = first + kRows < q_len ? first + kRows - 1 : q_len - 1;
  const int64_t end = causal ? last_row + 1 + shift : kv_len;
  const int blocks_of_dim = (dim + 15) / 16;

  copy_rows(s.q, kRows, q + head * q_len * q_stride, first, q_len, dim, q_stride);
  for (int column = half; column < kDim; column += 2) s.sums[line * kSumPitch + column] = 0.0f;
  float largest = -INFINITY, total = 0.0f;

  for (int64_t start = 0; start < end; start += kKeys) {
    __syncthreads();
    copy_rows(s.k, kKeys, k + kv_head * kv_len * k_stride, start, kv_len, dim, k_stride);
    copy_rows(s.v, kKeys, v + kv_head * kv_len * v_stride, start, kv_len, dim, v_stride);
    __syncthreads();
    for (int j = 0; j < kKeys; j += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
      wmma::fill_fragment(acc, 0.0f);
      for (int l = 0; l < blocks_of_dim; ++l) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
        wmma::load_matrix_sync(left, s.q + 16 * warp * kPitch + 16 * l, kPitch);
        wmma::load_matrix_sync(right, s.k + j * kPitch + 16 * l, kPitch);
        wmma::mma_sync(acc, left, right, acc);
      }
      wmma::store_matrix_sync(s.scores + 16 * warp * kScorePitch + j, acc, kScorePitch, wmma::mem_row_major);
    }
    __syncthreads();

    float of_block = -INFINITY;
    for (int j = half; j < kKeys; j += 2) {
      if (start + j < seen) of_block = fmaxf(of_block, s.scores[line * kScorePitch + j] * scale);
    }
    of_block = fmaxf(of_block, __shfl_xor_sync(0xffffffffu, of_block, 1));
    const float larger = of_block > largest + 8.0f ? of_block : largest, pivot = larger == -INFINITY ? 0.0f : larger;
    const float shrink = exp2f(largest - pivot);
    float sum = 0.0f;
    for (int j = half; j < kKeys; j += 2) {
      const float p = start + j < seen ? exp2f(s.scores[line * kScorePitch + j] * scale - pivot) : 0.0f;
      s.p[line * kProbPitch + j] = static_cast<T>(p);
      sum += p;
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    total = total * shrink + sum;
    largest = larger;
    for (int column = half; column < kDim; column += 2) s.sums[line * kSumPitch + column] *= shrink;
    __syncthreads();

    for (int column = 0; column < blocks_of_dim; ++column) {
      float* at = s.sums + 16 * warp * kSumPitch + 16 * column;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
      wmma::load_matrix_sync(acc, at, kSumPitch, wmma::mem_row_major);
      for (int j = 0; j < kKeys; j += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right;
        wmma::load_matrix_sync(left, s.p + 16 * warp * kProbPitch + j, kProbPitch);
        wmma::load_matrix_sync(right, s.v + j * kPitch + 16 * column, kPitch);
        wmma::mma_sync(acc, left, right, acc);
      }
      wmma::store_matrix_sync(at, acc, kSumPitch, wmma::mem_row_major);
    }
  }
  __syncthreads();
  if (row >= q_len) return;
  const float factor = total > 0.0f ? 1.0f / total : 0.0f;
  for (int column = half; column < dim; column += 2) {
    out[(head * q_len + row) * out_stride + column] = static_cast<T>(s.sums[line * kSumPitch + column] * factor);
  }
  if (half == 0) {
    lse[head * q_len + row] = total > 0.0f ? (largest + log2f(total)) * 0.6931471805599453f : -INFINITY;
    row_max[head * q_len + row] = largest;
  }
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, float* row_max, int64_t batch, int64_t q_heads,
               int64_t kv_heads, int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale,
               int64_t q_row_stride, int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const int bytes = static_cast<int>(sizeof(Shared<T>));
  cudaFuncSetAttribute(attend<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>((q_len + kRows - 1) / kRows), static_cast<unsigned>(batch * q_heads));
  attend<T><<<grid, kThreads, bytes, stream>>>(q, k, v, out, lse, row_max, q_heads, kv_heads, q_len, kv_len,
                                               static_cast<int>(dim), causal != 0, scale * 1.4426950408889634f,
                                               q_row_stride, k_row_stride, v_row_stride, out_row_stride);
}
