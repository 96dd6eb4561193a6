// Warp tiles of cooperative groups reduce by cg::reduce, and the block that draws the last ticket folds the partials.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kThreads = 256, kWarps = kThreads / 32, kMostBlocks = 132 * 16;

struct Scratch {
  float sums[kMostBlocks];
  float peaks[kMostBlocks];
  unsigned ticket;
};

__device__ void fold_block(float& sum, float& peak, float* shared_sums, float* shared_peaks) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  sum = cg::reduce(warp, sum, cg::plus<float>());
  peak = cg::reduce(warp, peak, cg::greater<float>());
  const int number = static_cast<int>(block.thread_rank()) / 32;
  if (warp.thread_rank() == 0) {
    shared_sums[number] = sum;
    shared_peaks[number] = peak;
  }
  block.sync();
  const bool there = warp.thread_rank() < kWarps;
  sum = cg::reduce(warp, there ? shared_sums[warp.thread_rank() % kWarps] : 0.0f, cg::plus<float>());
  peak = cg::reduce(warp, there ? shared_peaks[warp.thread_rank() % kWarps] : -INFINITY, cg::greater<float>());
  block.sync();
}

template <typename T>
__global__ void reduce_kernel(const T* x, float* total, T* largest, int64_t n, Scratch* scratch) {
  __shared__ float shared_sums[kWarps], shared_peaks[kWarps];
  __shared__ bool last;
  float sum = 0.0f, other = 0.0f, peak = -INFINITY;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += 2 * step) {
    const float first = static_cast<float>(x[i]);
    const bool more = i + step < n;
    const float second = more ? static_cast<float>(x[i + step]) : 0.0f;
    sum += first;
    other += second;
    peak = fmaxf(peak, more ? fmaxf(first, second) : first);
  }
  sum += other;
  fold_block(sum, peak, shared_sums, shared_peaks);
  if (threadIdx.x == 0) {
    scratch->sums[blockIdx.x] = sum;
    scratch->peaks[blockIdx.x] = peak;
    __threadfence();
    last = atomicAdd(&scratch->ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;

  __threadfence();
  sum = 0.0f;
  peak = -INFINITY;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
    sum += *reinterpret_cast<volatile float*>(&scratch->sums[i]);
    peak = fmaxf(peak, *reinterpret_cast<volatile float*>(&scratch->peaks[i]));
  }
  fold_block(sum, peak, shared_sums, shared_peaks);
  if (threadIdx.x == 0) {
    *total = sum;
    *largest = static_cast<T>(peak);
  }
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  Scratch* scratch = nullptr;
  if (cudaMallocAsync(&scratch, sizeof(Scratch), stream) != cudaSuccess) return;
  cudaMemsetAsync(&scratch->ticket, 0, sizeof(unsigned), stream);
  int64_t blocks = (n + kThreads - 1) / kThreads;
  if (blocks > kMostBlocks) blocks = kMostBlocks;
  reduce_kernel<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, total, largest, n, scratch);
  cudaFreeAsync(scratch, stream);
}
