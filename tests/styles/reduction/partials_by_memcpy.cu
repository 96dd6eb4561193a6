// Partial results of blocks are copied to the host by cudaMemcpy, finished there in double, and copied back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <vector>

constexpr int kThreads = 256, kMostBlocks = 2048;

template <typename T>
__global__ void partials(const T* x, float2* found, int64_t n) {
  __shared__ float sums[kThreads], peaks[kThreads];
  float sum = 0.0f, peak = -INFINITY;
  // A block has a piece of the vector for itself, and its threads stride over that piece.
  const int64_t piece = (n + gridDim.x - 1) / gridDim.x;
  const int64_t begin = blockIdx.x * piece, end = begin + piece < n ? begin + piece : n;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const float value = static_cast<float>(x[i]);
    sum += value;
    peak = fmaxf(peak, value);
  }
  sums[threadIdx.x] = sum;
  peaks[threadIdx.x] = peak;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
      peaks[threadIdx.x] = fmaxf(peaks[threadIdx.x], peaks[threadIdx.x + half]);
    }
  }
  if (threadIdx.x == 0) found[blockIdx.x] = make_float2(sums[0], peaks[0]);
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  int64_t blocks = (n + 4 * kThreads - 1) / (4 * kThreads);
  if (blocks > kMostBlocks) blocks = kMostBlocks;
  float2* found = nullptr;
  if (cudaMalloc(&found, blocks * sizeof(float2)) != cudaSuccess) return;
  partials<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, found, n);

  std::vector<float2> on_host(blocks);
  cudaStreamSynchronize(stream);
  cudaMemcpy(on_host.data(), found, blocks * sizeof(float2), cudaMemcpyDeviceToHost);
  cudaFree(found);
  double sum = 0.0;
  float peak = -INFINITY;
  for (const float2& part : on_host) {
    sum += part.x;
    peak = std::fmax(peak, part.y);
  }
  const float rounded = static_cast<float>(sum);
  const T best = static_cast<T>(peak);
  cudaMemcpyAsync(total, &rounded, sizeof(float), cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(largest, &best, sizeof(T), cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
}
