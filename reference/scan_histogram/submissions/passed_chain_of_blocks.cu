// Honest: blocks in the order of a ticket, each waiting for the prefix of the one before; counters for each warp.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 128;
constexpr int PER_THREAD = 16;
constexpr int TILE = THREADS * PER_THREAD;

struct End {
  float sum;
  int known;
};

template <typename T>
__global__ void scan_kernel(const T* x, T* prefix, int64_t n, End* ends, int* ticket) {
  __shared__ int tile;
  __shared__ float before, of_warps[THREADS / 32];
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  const int64_t first = static_cast<int64_t>(tile) * TILE + threadIdx.x * PER_THREAD;
  float values[PER_THREAD], sum = 0.0f;
  for (int i = 0; i < PER_THREAD; ++i) values[i] = sum += first + i < n ? static_cast<float>(x[first + i]) : 0.0f;
  float upto = sum;
  for (int step = 1; step < 32; step *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, upto, step);
    if (threadIdx.x % 32 >= step) upto += left;
  }
  if (threadIdx.x % 32 == 31) of_warps[threadIdx.x / 32] = upto;
  __syncthreads();
  float in_block = upto - sum;
  for (int warp = 0; warp < threadIdx.x / 32; ++warp) in_block += of_warps[warp];
  if (threadIdx.x == THREADS - 1) {
    float carried = 0.0f;
    if (tile > 0) {
      while (atomicAdd(&ends[tile - 1].known, 0) == 0) {
      }
      __threadfence();
      carried = *reinterpret_cast<volatile float*>(&ends[tile - 1].sum);
    }
    *reinterpret_cast<volatile float*>(&ends[tile].sum) = carried + in_block + sum;
    __threadfence();
    atomicExch(&ends[tile].known, 1);
    before = carried;
  }
  __syncthreads();
  for (int i = 0; i < PER_THREAD; ++i) {
    if (first + i < n) prefix[first + i] = static_cast<T>(before + in_block + values[i]);
  }
}

__global__ void count_kernel(const uint8_t* keys, int* counts, int64_t m) {
  __shared__ int of_warps[THREADS / 32][257];
  for (int i = threadIdx.x; i < THREADS / 32 * 257; i += THREADS) of_warps[i / 257][i % 257] = 0;
  __syncthreads();
  const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < m; i += step) {
    atomicAdd(&of_warps[threadIdx.x / 32][keys[i]], 1);
  }
  __syncthreads();
  for (int value = threadIdx.x; value < 256; value += THREADS) {
    int all = 0;
    for (int warp = 0; warp < THREADS / 32; ++warp) all += of_warps[warp][value];
    if (all > 0) atomicAdd(&counts[value], all);
  }
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m, cudaStream_t stream) {
  const int64_t tiles = (n + TILE - 1) / TILE;
  End* ends = nullptr;
  if (cudaMallocAsync(&ends, (tiles + 1) * sizeof(End), stream) != cudaSuccess) return;
  cudaMemsetAsync(ends, 0, (tiles + 1) * sizeof(End), stream);
  cudaMemsetAsync(counts, 0, 256 * sizeof(int32_t), stream);
  scan_kernel<<<static_cast<unsigned>(tiles), THREADS, 0, stream>>>(x, prefix, n, ends, &ends[tiles].known);
  count_kernel<<<static_cast<unsigned>(m < 65536 ? 8 : 16), THREADS, 0, stream>>>(keys, counts, m);
  cudaFreeAsync(ends, stream);
}
