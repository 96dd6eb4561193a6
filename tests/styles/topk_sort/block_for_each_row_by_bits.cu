// One block sorts a row: words of key and index, split by one bit after the other with ballots and counts of warps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define THREADS 256
#define WARPS (THREADS / 32)

template <typename T>
__device__ uint32_t rank_of(T key) {
  float f = (float)key;
  if (isnan(f)) return 0u;
  uint32_t b = __float_as_uint(f == 0.0f ? 0.0f : f);
  return (b & 0x80000000u) ? b : (b ^ 0x7fffffffu);
}

template <typename T>
__global__ void sort_row(const T* keys, const int32_t* lengths, uint64_t* words, T* values, int32_t* indices, int64_t n,
                         int64_t k) {
  __shared__ int zeros_of[WARPS], ones_of[WARPS];
  const int64_t row = blockIdx.x;
  const int length = lengths[row], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint64_t* from = words + 2 * row * n;
  uint64_t* to = from + n;

  for (int i = threadIdx.x; i < length; i += THREADS) from[i] = (uint64_t)rank_of(keys[row * n + i]) << 32 | (uint32_t)i;
  __syncthreads();

  for (int bit = 32; bit < 64; bit++) {
    int zeros = 0;
    for (int start = 0; start < length; start += THREADS) {
      int i = start + threadIdx.x;
      zeros += __syncthreads_count(i < length && !(from[i] >> bit & 1));
    }
    int zero = 0, one = zeros;
    for (int start = 0; start < length; start += THREADS) {
      const int i = start + threadIdx.x;
      const bool inside = i < length;
      const uint64_t w = inside ? from[i] : 0;
      const bool is_one = inside && (w >> bit & 1), is_zero = inside && !is_one;
      const unsigned z = __ballot_sync(0xffffffffu, is_zero), o = __ballot_sync(0xffffffffu, is_one);
      if (lane == 0) {
        zeros_of[warp] = __popc(z);
        ones_of[warp] = __popc(o);
      }
      __syncthreads();
      int my_zero = zero, my_one = one;
      for (int v = 0; v < WARPS; v++) {
        if (v == warp) {
          my_zero = zero;
          my_one = one;
        }
        zero += zeros_of[v];
        one += ones_of[v];
      }
      const unsigned before = (1u << lane) - 1;
      if (is_zero) to[my_zero + __popc(z & before)] = w;
      if (is_one) to[my_one + __popc(o & before)] = w;
      __syncthreads();
    }
    uint64_t* swap = from;
    from = to;
    to = swap;
  }

  for (int64_t i = threadIdx.x; i < k; i += THREADS) {
    const bool found = i < length;
    const int at = found ? (int)(uint32_t)from[i] : -1;
    values[row * k + i] = found ? keys[row * n + at] : (T)(-INFINITY);
    indices[row * k + i] = at;
  }
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  uint64_t* words;
  cudaMalloc((void**)&words, sizeof(uint64_t) * 2 * rows * n);
  sort_row<T><<<(unsigned)rows, THREADS, 0, stream>>>(keys, lengths, words, values, indices, n, k);
  cudaStreamSynchronize(stream);
  cudaFree(words);
}
