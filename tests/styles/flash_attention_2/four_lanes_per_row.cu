// Float tiles of keys and values in shared memory; four lanes share a row of q and meet by two shuffles for each score.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

constexpr int kThreads = 128, kLanes = 4, kRows = kThreads / kLanes, kKeys = 32, kDim = 128;
// Of a row's float4s a lane has every fourth, from its own number on.
constexpr int kOwn = kDim / kLanes / 4;

template <typename T>
__device__ void fill(float (*tile)[kDim], const T* from, int64_t first, int64_t rows, int dim, int64_t stride) {
  for (int i = threadIdx.x; i < kKeys * kDim; i += kThreads) {
    const int64_t row = first + i / kDim;
    const int column = i % kDim;
    tile[i / kDim][column] = row < rows && column < dim ? static_cast<float>(from[row * stride + column]) : 0.0f;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attend(const T* q, const T* k, const T* v, T* out, float* lse, int64_t q_heads, int64_t kv_heads, int64_t q_len,
           int64_t kv_len, int dim, bool causal, float scale, int64_t q_stride, int64_t k_stride, int64_t v_stride,
           int64_t out_stride) {
  __shared__ alignas(16) float keys[kKeys][kDim];
  __shared__ alignas(16) float values[kKeys][kDim];
  const int lane = threadIdx.x % kLanes;
  const int64_t head = blockIdx.y;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows, row = first_row + threadIdx.x / kLanes;

  float mine[kOwn][4], sums[kOwn][4];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = (i * kLanes + lane) * 4 + e;
      mine[i][e] =
          row < q_len && column < dim ? static_cast<float>(q[(head * q_len + row) * q_stride + column]) * scale : 0.0f;
      sums[i][e] = 0.0f;
    }
  }
  // How many keys this row sees, and how many the block's last row does.
  int64_t seen = kv_len, end = kv_len;
  if (causal) {
    const int64_t last_row = first_row + kRows < q_len ? first_row + kRows - 1 : q_len - 1;
    seen = row < q_len ? row + 1 + kv_len - q_len : 0;
    end = last_row + 1 + kv_len - q_len;
  }
  float largest = -INFINITY, total = 0.0f;
  for (int64_t start = 0; start < end; start += kKeys) {
    fill(keys, k + kv_head * kv_len * k_stride, start, kv_len, dim, k_stride);
    fill(values, v + kv_head * kv_len * v_stride, start, kv_len, dim, v_stride);
    __syncthreads();
    const int count = static_cast<int>(end - start < kKeys ? end - start : kKeys);
    for (int j = 0; j < count; ++j) {
      float score = 0.0f;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const float4 key = *reinterpret_cast<const float4*>(&keys[j][(i * kLanes + lane) * 4]);
        score += mine[i][0] * key.x + mine[i][1] * key.y + mine[i][2] * key.z + mine[i][3] * key.w;
      }
      score += __shfl_xor_sync(0xffffffffu, score, 1);
      score += __shfl_xor_sync(0xffffffffu, score, 2);
      if (start + j >= seen) continue;
      if (score > largest) {
        const float shrink = expf(largest - score);
        total *= shrink;
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
#pragma unroll
          for (int e = 0; e < 4; ++e) sums[i][e] *= shrink;
        }
        largest = score;
      }
      const float p = expf(score - largest);
      total += p;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const float4 value = *reinterpret_cast<const float4*>(&values[j][(i * kLanes + lane) * 4]);
        sums[i][0] += p * value.x;
        sums[i][1] += p * value.y;
        sums[i][2] += p * value.z;
        sums[i][3] += p * value.w;
      }
    }
    __syncthreads();
  }
  if (row >= q_len) return;
  const float scaled = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = (i * kLanes + lane) * 4 + e;
      if (column < dim) out[(head * q_len + row) * out_stride + column] = static_cast<T>(sums[i][e] * scaled);
    }
  }
  if (lane == 0) lse[head * q_len + row] = total > 0.0f ? largest + logf(total) : -INFINITY;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((q_len + kRows - 1) / kRows), static_cast<unsigned>(batch * q_heads));
  attend<T><<<grid, kThreads, 0, stream>>>(q, k, v, out, lse, q_heads, kv_heads, q_len, kv_len, static_cast<int>(dim),
                                           causal != 0, scale, q_row_stride, k_row_stride, v_row_stride,
                                           out_row_stride);
}
