// Wrong: counters of sixteen bits, two to a word, which one block overflows where a key is there 65536 times.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PER_THREAD = 8;
constexpr int TILE = THREADS * PER_THREAD;

// The sum over all threads up to this one; `sums` is left for the next call.
__device__ float scan_block(float value, float* sums) {
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    const float left = threadIdx.x >= step ? sums[threadIdx.x - step] : 0.0f;
    __syncthreads();
    sums[threadIdx.x] += left;
    __syncthreads();
  }
  return sums[threadIdx.x];
}

template <typename T>
__device__ float load(const T* x, int64_t i, int64_t n) {
  return i < n ? static_cast<float>(x[i]) : 0.0f;
}

template <typename T>
__global__ void sums_kernel(const T* x, float* of_tiles, int64_t n) {
  __shared__ float sums[THREADS];
  float sum = 0.0f;
  for (int i = 0; i < PER_THREAD; ++i) sum += load(x, static_cast<int64_t>(blockIdx.x) * TILE + i * THREADS + threadIdx.x, n);
  sum = scan_block(sum, sums);
  if (threadIdx.x == THREADS - 1) of_tiles[blockIdx.x] = sum;
}

__global__ void before_kernel(float* of_tiles, int64_t tiles) {
  __shared__ float sums[THREADS];
  float before = 0.0f;
  for (int64_t start = 0; start < tiles; start += THREADS) {
    const int64_t i = start + threadIdx.x;
    const float own = load(of_tiles, i, tiles);
    const float upto = scan_block(own, sums);
    if (i < tiles) of_tiles[i] = before + upto - own;
    before += sums[THREADS - 1];
    __syncthreads();
  }
}

template <typename T>
__global__ void scan_kernel(const T* x, const float* of_tiles, T* prefix, int64_t n) {
  __shared__ float sums[THREADS];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * TILE + threadIdx.x * PER_THREAD;
  float values[PER_THREAD];
  float sum = 0.0f;
  for (int i = 0; i < PER_THREAD; ++i) values[i] = sum += load(x, first + i, n);
  const float before = of_tiles[blockIdx.x] + scan_block(sum, sums) - sum;
  for (int i = 0; i < PER_THREAD; ++i) {
    if (first + i < n) prefix[first + i] = static_cast<T>(before + values[i]);
  }
}

__global__ void clear_kernel(int* counts) { counts[threadIdx.x] = 0; }

// Two counters to a word: half the shared memory. One block, so that nobody meets in memory.
__global__ void count_kernel(const uint8_t* keys, int* counts, int64_t m) {
  __shared__ unsigned pairs[128];
  if (threadIdx.x < 128) pairs[threadIdx.x] = 0;
  __syncthreads();
  const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < m; i += step) {
    atomicAdd(&pairs[keys[i] / 2], 1u << keys[i] % 2 * 16);
  }
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], static_cast<int>(pairs[threadIdx.x / 2] >> threadIdx.x % 2 * 16 & 0xffffu));
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  const int64_t tiles = (n + TILE - 1) / TILE;
  float* of_tiles = nullptr;
  if (cudaMallocAsync(&of_tiles, tiles * sizeof(float), stream) != cudaSuccess) return;
  sums_kernel<<<static_cast<unsigned>(tiles), THREADS, 0, stream>>>(x, of_tiles, n);
  before_kernel<<<1, THREADS, 0, stream>>>(of_tiles, tiles);
  scan_kernel<<<static_cast<unsigned>(tiles), THREADS, 0, stream>>>(x, of_tiles, prefix, n);
  clear_kernel<<<1, 256, 0, stream>>>(counts);
  count_kernel<<<1, THREADS, 0, stream>>>(keys, counts, m);
  cudaFreeAsync(of_tiles, stream);
}
