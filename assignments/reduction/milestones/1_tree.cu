// Reduction, first milestone: an element to each thread, and a tree in shared memory for every 256 of them.
//
// Each level of the tree is a barrier, and has half as many threads at work as the one before. The blocks' partial results are
// reduced in the same way by further launches, until one is left. All that work serves one element per thread.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

struct Partial {
  float total;
  float largest;
};

__device__ Partial both(Partial a, Partial b) { return {a.total + b.total, fmaxf(a.largest, b.largest)}; }

// A tree in shared memory; thread 0 gets the block's result.
__device__ Partial over_block(Partial mine) {
  __shared__ Partial of_threads[THREADS];
  of_threads[threadIdx.x] = mine;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) of_threads[threadIdx.x] = both(of_threads[threadIdx.x], of_threads[threadIdx.x + half]);
    __syncthreads();
  }
  return of_threads[0];
}

template <typename T>
__global__ void parts_of_numbers(const T* x, int64_t n, Partial* parts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const float value = i < n ? static_cast<float>(x[i]) : 0.0f;
  const Partial part = over_block({value, i < n ? value : -INFINITY});
  if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

__global__ void parts_of_parts(const Partial* from, int64_t n, Partial* parts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const Partial part = over_block(i < n ? from[i] : Partial{0.0f, -INFINITY});
  if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

template <typename T>
__global__ void answer(const Partial* part, float* total, T* largest) {
  *total = part->total;
  *largest = static_cast<T>(part->largest);
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  int64_t blocks = (n + THREADS - 1) / THREADS;
  Partial *parts = nullptr, *others = nullptr;
  cudaMallocAsync(&parts, blocks * sizeof(Partial), stream);
  cudaMallocAsync(&others, blocks * sizeof(Partial), stream);
  parts_of_numbers<<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(x, n, parts);
  Partial *from = parts, *to = others;
  while (blocks > 1) {
    const int64_t fewer = (blocks + THREADS - 1) / THREADS;
    parts_of_parts<<<static_cast<unsigned>(fewer), THREADS, 0, stream>>>(from, blocks, to);
    Partial* written = to;
    to = from, from = written, blocks = fewer;
  }
  answer<<<1, 1, 0, stream>>>(from, total, largest);
  cudaFreeAsync(parts, stream);
  cudaFreeAsync(others, stream);
}
