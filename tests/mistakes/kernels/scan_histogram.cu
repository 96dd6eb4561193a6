// Running sums by one block that walks along, and counts of keys by atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

template <typename T>
__global__ void scan_kernel(const T* x, T* prefix, int64_t n) {
  __shared__ float sums[THREADS];
  float before = 0.0f;
  for (int64_t start = 0; start < n; start += THREADS) {
    const int64_t i = start + threadIdx.x;
    sums[threadIdx.x] = i < n ? static_cast<float>(x[i]) : 0.0f;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
      const float left = threadIdx.x >= step ? sums[threadIdx.x - step] : 0.0f;
      __syncthreads();
      sums[threadIdx.x] += left;
      __syncthreads();
    }
    if (i < n) prefix[i] = static_cast<T>(before + sums[threadIdx.x]);
    before += sums[THREADS - 1];
    __syncthreads();
  }
}

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

__global__ void count_kernel(const uint8_t* keys, int* counts, int64_t m) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = blockIdx.x * int64_t{THREADS} + threadIdx.x; i < m; i += int64_t{THREADS} * gridDim.x)
    atomicAdd(&mine[keys[i]], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m,
                    cudaStream_t stream) {
  scan_kernel<<<1, THREADS, 0, stream>>>(x, prefix, n);
  clear_kernel<<<1, 256, 0, stream>>>(counts);
  count_kernel<<<4, THREADS, 0, stream>>>(keys, counts, m);
}
