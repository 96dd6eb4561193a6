// A block for each row of q: scores of a chunk of keys lie in shared memory, then threads own columns and add up
// values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

#define THREADS 128
#define CHUNK 2048
#define MAX_DIM 128

// Maximum or sum over the block, by a tree in shared memory.
template <bool MAXIMUM>
__device__ float block_tree(float value, float* buffer) {
  buffer[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      float other = buffer[threadIdx.x + half];
      buffer[threadIdx.x] = MAXIMUM ? fmaxf(buffer[threadIdx.x], other) : buffer[threadIdx.x] + other;
    }
    __syncthreads();
  }
  float result = buffer[0];
  __syncthreads();
  return result;
}

template <typename T>
__global__ void attention_row(const T* q, const T* k, const T* v, T* out, float* lse, int64_t q_heads, int64_t kv_heads,
                              int64_t q_len, int64_t kv_len, int dim, int causal, float scale, int64_t q_row_stride,
                              int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride) {
  __shared__ float scores[CHUNK];
  __shared__ float query[MAX_DIM];
  __shared__ float buffer[THREADS];

  int64_t row = blockIdx.x;
  int64_t head = blockIdx.y;  // batch * q_heads + query head
  int64_t z = head / q_heads, h = head % q_heads;
  int64_t kv_head = z * kv_heads + h / (q_heads / kv_heads);
  const T* q_row = q + (head * q_len + row) * q_row_stride;
  const T* k_head = k + kv_head * kv_len * k_row_stride;
  const T* v_head = v + kv_head * kv_len * v_row_stride;
  int t = threadIdx.x;

  if (t < dim) query[t] = (float)q_row[t] * scale;
  __syncthreads();

  int64_t visible = kv_len;
  if (causal) {
    visible = row + 1 + kv_len - q_len;
    if (visible > kv_len) visible = kv_len;
    if (visible < 0) visible = 0;
  }

  // m and l are the same in all threads; acc is this thread's column.
  float m = -INFINITY, l = 0.0f, acc = 0.0f;
  for (int64_t start = 0; start < visible; start += CHUNK) {
    int count = (int)(visible - start < CHUNK ? visible - start : CHUNK);
    // A warp takes one key at a time; its lanes share the columns.
    float top = -INFINITY;
    for (int j = t / 32; j < count; j += THREADS / 32) {
      const T* key = k_head + (start + j) * k_row_stride;
      float dot = 0.0f;
      for (int d = t % 32; d < dim; d += 32) dot += query[d] * (float)key[d];
      for (int o = 16; o > 0; o /= 2) dot += __shfl_xor_sync(0xffffffff, dot, o);
      if (t % 32 == 0) scores[j] = dot;
      top = fmaxf(top, dot);
    }
    float m_new = fmaxf(m, block_tree<true>(top, buffer));
    float partial = 0.0f;
    for (int j = t; j < count; j += THREADS) {
      float p = expf(scores[j] - m_new);
      scores[j] = p;
      partial += p;
    }
    float rescale = expf(m - m_new);  // exp(-inf) is 0 the first time
    l = l * rescale + block_tree<false>(partial, buffer);
    acc *= rescale;
    if (t < dim) {
      for (int j = 0; j < count; j++) acc += scores[j] * (float)v_head[(start + j) * v_row_stride + t];
    }
    m = m_new;
    __syncthreads();  // nobody writes new scores while others still read these
  }

  if (t < dim) {
    float answer = l > 0.0f ? acc / l : 0.0f;
    out[(head * q_len + row) * out_row_stride + t] = (T)answer;
  }
  if (t == 0) lse[head * q_len + row] = l > 0.0f ? m + logf(l) : -INFINITY;
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, int64_t batch, int64_t q_heads, int64_t kv_heads,
               int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale, int64_t q_row_stride,
               int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  dim3 grid((unsigned)q_len, (unsigned)(batch * q_heads));
  attention_row<T><<<grid, THREADS, 0, stream>>>(q, k, v, out, lse, q_heads, kv_heads, q_len, kv_len, (int)dim,
                                                 (int)causal, scale, q_row_stride, k_row_stride, v_row_stride,
                                                 out_row_stride);
}
