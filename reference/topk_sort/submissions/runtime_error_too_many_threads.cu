// Fails: no GPU has blocks of 2048 threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 2048;

template <typename T>
__device__ bool is_before(T a, int64_t i, T b, int64_t j) {
  const float x = static_cast<float>(a), y = static_cast<float>(b);
  if (isnan(x) != isnan(y)) return isnan(x);
  return x > y || (!(x < y) && i < j);
}

template <typename T>
__global__ void rank_kernel(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t n, int64_t k) {
  __shared__ T others[THREADS];
  const int64_t row = blockIdx.y, mine = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const int64_t length = lengths[row];
  const T key = keys[row * n + min(mine, n - 1)];
  int64_t place = 0;
  for (int64_t start = 0; start < length; start += THREADS) {
    if (start + threadIdx.x < length) others[threadIdx.x] = keys[row * n + start + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < THREADS && start + j < length; ++j) place += is_before(others[j], start + j, key, mine);
    __syncthreads();
  }
  if (mine < length && place < k) {
    values[row * k + place] = key;
    indices[row * k + place] = static_cast<int32_t>(mine);
  }
  for (int64_t j = mine; j < k; j += static_cast<int64_t>(gridDim.x) * THREADS) {
    if (j < length) continue;
    values[row * k + j] = static_cast<T>(-INFINITY);
    indices[row * k + j] = -1;
  }
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + THREADS - 1) / THREADS), static_cast<unsigned>(rows));
  rank_kernel<<<grid, THREADS, 0, stream>>>(keys, lengths, values, indices, n, k);
}
