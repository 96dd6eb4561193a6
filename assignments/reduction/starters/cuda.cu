// Reduction: the sum and the largest of n numbers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int BLOCKS = 64;

// Memory for what the first kernel passes to the second: one sum and one maximum of every block.
__device__ float totals[BLOCKS], largests[BLOCKS];

template <typename T>
__global__ void reduce_parts(const T* x, int64_t n) {
  // Every thread goes through its part of x in strides of the whole grid.
  float total = 0.0f, largest = 0.0f;  // Your part: 0 changes no sum. Does it change no maximum?
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS) {
    total += static_cast<float>(x[i]);
    largest = fmaxf(largest, static_cast<float>(x[i]));
  }

  // The threads of the block meet in shared memory: in every round half of them take over from the other half.
  __shared__ float of_threads[THREADS];
  of_threads[threadIdx.x] = total;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) of_threads[threadIdx.x] += of_threads[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    totals[blockIdx.x] = of_threads[0];
    // Your part: this is the maximum of one thread, not of the block.
    largests[blockIdx.x] = largest;
  }
}

template <typename T>
__global__ void fold_parts(float* total, T* largest) {
  // Your part: this takes the first block's results as the whole answer.
  *total = totals[0];
  *largest = static_cast<T>(largests[0]);
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of x.
template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  reduce_parts<<<BLOCKS, THREADS, 0, stream>>>(x, n);
  fold_parts<<<1, 1, 0, stream>>>(total, largest);
}
