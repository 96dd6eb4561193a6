// Scan and histogram: running sums of n numbers, and how often each of 256 values occurs among m keys.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

template <typename T>
__global__ void scan_kernel(const T* x, T* prefix, int64_t n) {
  __shared__ float sums[THREADS];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  sums[threadIdx.x] = i < n ? static_cast<float>(x[i]) : 0.0f;
  __syncthreads();
  // After each round a thread's sum reaches twice as far to the left.
  for (int step = 1; step < THREADS; step *= 2) {
    const float left = threadIdx.x >= step ? sums[threadIdx.x - step] : 0.0f;
    __syncthreads();
    sums[threadIdx.x] += left;
    __syncthreads();
  }
  // Your part: these are the running sums inside the block. What came before the block has to be added.
  if (i < n) prefix[i] = static_cast<T>(sums[threadIdx.x]);
}

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

__global__ void count_kernel(const uint8_t* keys, int* counts, int64_t m) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  // Your part: two threads that read a counter at the same time both add one to the same number. And all threads of the
  // device want the same 256 words: let each block count for itself first.
  if (i < m) counts[keys[i]] = counts[keys[i]] + 1;
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's numbers.
template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  scan_kernel<<<static_cast<unsigned>((n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(x, prefix, n);
  clear_kernel<<<1, 256, 0, stream>>>(counts);
  count_kernel<<<static_cast<unsigned>((m + THREADS - 1) / THREADS), THREADS, 0, stream>>>(keys, counts, m);
}
