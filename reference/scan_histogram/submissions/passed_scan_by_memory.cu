// Honest: Blelloch's tree over the tiles' sums, up and down in shared memory; each thread counts one value by looking at all keys.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int TILE = 2048;

template <typename T>
__global__ void sums_kernel(const T* x, float* of_tiles, int64_t n, int64_t tiles) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (tile >= tiles) return;
  float sum = 0.0f;
  for (int64_t i = tile * TILE; i < n && i < (tile + 1) * TILE; ++i) sum += static_cast<float>(x[i]);
  of_tiles[tile] = sum;
}

// Turns sums into what comes before each; 512 of them at a time.
__global__ void before_kernel(float* of_tiles, int64_t tiles) {
  __shared__ float tree[2 * THREADS];
  float before = 0.0f;
  for (int64_t start = 0; start < tiles; start += 2 * THREADS) {
    for (int i = threadIdx.x; i < 2 * THREADS; i += THREADS) tree[i] = start + i < tiles ? of_tiles[start + i] : 0.0f;
    for (int step = 1; step < 2 * THREADS; step *= 2) {
      __syncthreads();
      const int at = (threadIdx.x + 1) * 2 * step - 1;
      if (at < 2 * THREADS) tree[at] += tree[at - step];
    }
    __syncthreads();
    const float all = tree[2 * THREADS - 1];
    __syncthreads();
    if (threadIdx.x == 0) tree[2 * THREADS - 1] = 0.0f;
    for (int step = THREADS; step > 0; step /= 2) {
      __syncthreads();
      const int at = (threadIdx.x + 1) * 2 * step - 1;
      if (at < 2 * THREADS) {
        const float left = tree[at - step];
        tree[at - step] = tree[at];
        tree[at] += left;
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * THREADS; i += THREADS) {
      if (start + i < tiles) of_tiles[start + i] = before + tree[i];
    }
    before += all;
    __syncthreads();
  }
}

template <typename T>
__global__ void scan_kernel(const T* x, const float* of_tiles, T* prefix, int64_t n, int64_t tiles) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (tile >= tiles) return;
  float sum = 0.0f;
  for (int64_t i = tile * TILE; i < n && i < (tile + 1) * TILE; ++i) {
    sum += static_cast<float>(x[i]);
    prefix[i] = static_cast<T>(of_tiles[tile] + sum);
  }
}

__global__ void count_kernel(const uint8_t* keys, int* counts, int64_t m) {
  int all = 0;
  for (int64_t i = 0; i < m; ++i) all += keys[i] == threadIdx.x;
  counts[threadIdx.x] = all;
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  const int64_t tiles = (n + TILE - 1) / TILE;
  const unsigned blocks = static_cast<unsigned>((tiles + THREADS - 1) / THREADS);
  float* of_tiles = nullptr;
  if (cudaMallocAsync(&of_tiles, tiles * sizeof(float), stream) != cudaSuccess) return;
  sums_kernel<<<blocks, THREADS, 0, stream>>>(x, of_tiles, n, tiles);
  before_kernel<<<1, THREADS, 0, stream>>>(of_tiles, tiles);
  scan_kernel<<<blocks, THREADS, 0, stream>>>(x, of_tiles, prefix, n, tiles);
  count_kernel<<<1, 256, 0, stream>>>(keys, counts, m);
  cudaFreeAsync(of_tiles, stream);
}
