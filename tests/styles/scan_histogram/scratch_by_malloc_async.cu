// Scratch by cudaMallocAsync, zeros by cudaMemsetAsync, and four launches: sums of tiles, their scan, tiles, counts.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256, kPerThread = 8, kTile = kThreads * kPerThread;

// Exclusive scan of one number for each thread of the block; `all` is the sum of all of them.
__device__ float exclusive(float value, float& all) {
  __shared__ float of_warps[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float upto = value;
  for (int step = 1; step < 32; step *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, upto, step);
    if (lane >= step) upto += left;
  }
  __syncthreads();
  if (lane == 31) of_warps[warp] = upto;
  __syncthreads();
  float before = 0.0f;
  all = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w == warp) before = all;
    all += of_warps[w];
  }
  return before + (upto - value);
}

template <typename T>
__global__ void tile_sums(const T* x, float* sums, int64_t n) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  float mine = 0.0f, all;
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t at = first + i * kThreads + threadIdx.x;
    if (at < n) mine += static_cast<float>(x[at]);
  }
  exclusive(mine, all);
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
}

// One block turns the tiles' sums into what stands before each tile.
__global__ void scan_sums(float* sums, int64_t tiles) {
  float carried = 0.0f;
  for (int64_t start = 0; start < tiles; start += kThreads) {
    const int64_t at = start + threadIdx.x;
    float all;
    const float before = exclusive(at < tiles ? sums[at] : 0.0f, all);
    if (at < tiles) sums[at] = carried + before;
    carried += all;
  }
}

template <typename T>
__global__ void scan_tiles(const T* x, const float* before_tile, T* prefix, int64_t n) {
  __shared__ float values[kTile];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  for (int i = threadIdx.x; i < kTile; i += kThreads) {
    values[i] = first + i < n ? static_cast<float>(x[first + i]) : 0.0f;
  }
  __syncthreads();
  float mine = 0.0f, all;
  for (int i = 0; i < kPerThread; ++i) mine += values[threadIdx.x * kPerThread + i];
  float running = before_tile[blockIdx.x] + exclusive(mine, all);
  for (int i = 0; i < kPerThread; ++i) {
    running += values[threadIdx.x * kPerThread + i];
    values[threadIdx.x * kPerThread + i] = running;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTile; i += kThreads) {
    if (first + i < n) prefix[first + i] = static_cast<T>(values[i]);
  }
}

__global__ void count_keys(const uint8_t* keys, int32_t* counts, int64_t m) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < m; i += step) {
    atomicAdd(&mine[keys[i]], 1);
  }
  __syncthreads();
  if (mine[threadIdx.x] != 0) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m,
                    cudaStream_t stream) {
  const int64_t tiles = (n + kTile - 1) / kTile;
  float* sums = nullptr;
  if (cudaMallocAsync(&sums, tiles * sizeof(float), stream) != cudaSuccess) return;
  tile_sums<T><<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(x, sums, n);
  scan_sums<<<1, kThreads, 0, stream>>>(sums, tiles);
  scan_tiles<T><<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(x, sums, prefix, n);

  cudaMemsetAsync(counts, 0, 256 * sizeof(int32_t), stream);
  int64_t blocks = (m + kThreads - 1) / kThreads;
  if (blocks > 132 * 8) blocks = 132 * 8;
  count_keys<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(keys, counts, m);
  cudaFreeAsync(sums, stream);
}
