// One cooperative launch: every block leaves a partial result, the grid synchronises, and block 0 folds what is there.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

#define GPU_TRY(x)                                                                              \
  do {                                                                                          \
    cudaError_t rc_ = (x);                                                                      \
    if (rc_ != cudaSuccess) {                                                                   \
      fprintf(stderr, "[%s:%d] %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(rc_));     \
      abort();                                                                                  \
    }                                                                                           \
  } while (0)

constexpr int kBlock = 512;
constexpr int kMaxGrid = 2048;
constexpr int kItems = 8;

__device__ float part_sum[kMaxGrid];
__device__ float part_max[kMaxGrid];

struct SumMax {
  float sum, max;
};

__device__ SumMax block_fold(cg::thread_block block, SumMax mine) {
  __shared__ float sums[32], maxes[32];
  auto warp = cg::tiled_partition<32>(block);
  mine.sum = cg::reduce(warp, mine.sum, cg::plus<float>());
  mine.max = cg::reduce(warp, mine.max, cg::greater<float>());
  if (warp.thread_rank() == 0) {
    sums[warp.meta_group_rank()] = mine.sum;
    maxes[warp.meta_group_rank()] = mine.max;
  }
  block.sync();
  if (warp.meta_group_rank() == 0) {
    const bool there = warp.thread_rank() < warp.meta_group_size();
    mine.sum = cg::reduce(warp, there ? sums[warp.thread_rank()] : 0.0f, cg::plus<float>());
    mine.max = cg::reduce(warp, there ? maxes[warp.thread_rank()] : -INFINITY, cg::greater<float>());
  }
  return mine;
}

template <typename T>
__global__ void __launch_bounds__(kBlock) sum_max_kernel(const T* __restrict__ x, float* total, T* largest, int64_t n) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();

  const int64_t threads = static_cast<int64_t>(gridDim.x) * kBlock;
  const int64_t rank = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;

  float sum[kItems], most = -INFINITY;
#pragma unroll
  for (int k = 0; k < kItems; ++k) sum[k] = 0.0f;

  int64_t i = rank;
  for (; i + (kItems - 1) * threads < n; i += kItems * threads) {
    T v[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) v[k] = x[i + k * threads];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const float f = static_cast<float>(v[k]);
      sum[k] += f;
      most = fmaxf(most, f);
    }
  }
  for (; i < n; i += threads) {
    const float f = static_cast<float>(x[i]);
    sum[0] += f;
    most = fmaxf(most, f);
  }
#pragma unroll
  for (int width = kItems / 2; width > 0; width /= 2) {
#pragma unroll
    for (int k = 0; k < width; ++k) sum[k] += sum[k + width];
  }

  SumMax folded = block_fold(block, SumMax{sum[0], most});
  if (threadIdx.x == 0) {
    part_sum[blockIdx.x] = folded.sum;
    part_max[blockIdx.x] = folded.max;
  }

  grid.sync();

  if (blockIdx.x == 0) {
    SumMax rest{0.0f, -INFINITY};
    for (int b = threadIdx.x; b < static_cast<int>(gridDim.x); b += kBlock) {
      rest.sum += part_sum[b];
      rest.max = fmaxf(rest.max, part_max[b]);
    }
    block.sync();
    rest = block_fold(block, rest);
    if (threadIdx.x == 0) {
      *total = rest.sum;
      *largest = static_cast<T>(rest.max);
    }
  }
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  static int grid_limit = 0;
  if (grid_limit == 0) {
    int device = 0, sms = 0, per_sm = 0, supported = 0;
    GPU_TRY(cudaGetDevice(&device));
    GPU_TRY(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device));
    if (!supported) {
      fprintf(stderr, "this device has no cooperative launch\n");
      abort();
    }
    GPU_TRY(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    GPU_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, sum_max_kernel<T>, kBlock, 0));
    grid_limit = sms * per_sm;
    if (grid_limit > kMaxGrid) grid_limit = kMaxGrid;
  }
  int64_t wanted = (n + kBlock * kItems - 1) / (kBlock * kItems);
  if (wanted > grid_limit) wanted = grid_limit;

  void* args[] = {&x, &total, &largest, &n};
  GPU_TRY(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&sum_max_kernel<T>),
                                      dim3(static_cast<unsigned>(wanted)), dim3(kBlock), args, 0, stream));
}
