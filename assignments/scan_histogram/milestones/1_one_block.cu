// Scan and histogram, first milestone: one block scans, tile after tile, and every key is an atomic addition to memory.
//
// What came before a tile is a number that the block carries along. It is right, but a single multiprocessor works.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PER_THREAD = 4;
constexpr int TILE = THREADS * PER_THREAD;

template <typename T>
__global__ void scan_kernel(const T* x, T* prefix, int64_t n) {
  __shared__ float sums[THREADS];
  float before = 0.0f;
  for (int64_t start = 0; start < n; start += TILE) {
    const int64_t first = start + threadIdx.x * PER_THREAD;
    float values[PER_THREAD], sum = 0.0f;
    for (int i = 0; i < PER_THREAD; ++i) values[i] = sum += first + i < n ? static_cast<float>(x[first + i]) : 0.0f;
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
      const float left = threadIdx.x >= step ? sums[threadIdx.x - step] : 0.0f;
      __syncthreads();
      sums[threadIdx.x] += left;
      __syncthreads();
    }
    const float left = before + sums[threadIdx.x] - sum;
    for (int i = 0; i < PER_THREAD; ++i) {
      if (first + i < n) prefix[first + i] = static_cast<T>(left + values[i]);
    }
    before += sums[THREADS - 1];
    __syncthreads();
  }
}

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

__global__ void count_kernel(const uint8_t* keys, int* counts, int64_t m) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i < m) atomicAdd(&counts[keys[i]], 1);
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  scan_kernel<<<1, THREADS, 0, stream>>>(x, prefix, n);
  clear_kernel<<<1, 256, 0, stream>>>(counts);
  count_kernel<<<static_cast<unsigned>((m + THREADS - 1) / THREADS), THREADS, 0, stream>>>(keys, counts, m);
}
