// SDK-sample style: error-check macro, helper functions on top, and a grid-stride loop sized by the occupancy API.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

////////////////////////////////////////////////////////////////////////////////
// Helpers that would stand in a common header
////////////////////////////////////////////////////////////////////////////////
inline void check(cudaError_t result, const char* func, const char* file, int line) {
  if (result != cudaSuccess) {
    fprintf(stderr, "CUDA error at %s:%d, code %d (%s) from \"%s\"\n", file, line, static_cast<int>(result),
            cudaGetErrorString(result), func);
    exit(EXIT_FAILURE);
  }
}
#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)

template <typename T>
inline T divUp(T a, T b) {
  return (a + b - 1) / b;
}

////////////////////////////////////////////////////////////////////////////////
// Device code
////////////////////////////////////////////////////////////////////////////////
template <typename T>
__global__ void saxpyGridStride(float a, const T* __restrict__ d_x, const T* __restrict__ d_y, T* __restrict__ d_out,
                                int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

  // Four independent elements in flight for each thread
  for (; i + 3 * stride < n; i += 4 * stride) {
    T x[4], y[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x[k] = d_x[i + k * stride];
      y[k] = d_y[i + k * stride];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      d_out[i + k * stride] = static_cast<T>(fmaf(a, static_cast<float>(x[k]), static_cast<float>(y[k])));
    }
  }
  for (; i < n; i += stride) {
    d_out[i] = static_cast<T>(fmaf(a, static_cast<float>(d_x[i]), static_cast<float>(d_y[i])));
  }
}

////////////////////////////////////////////////////////////////////////////////
// Host code
////////////////////////////////////////////////////////////////////////////////
template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const int blockSize = 256;
  int device = 0, numSMs = 0, blocksPerSM = 0;
  checkCudaErrors(cudaGetDevice(&device));
  checkCudaErrors(cudaDeviceGetAttribute(&numSMs, cudaDevAttrMultiProcessorCount, device));
  checkCudaErrors(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocksPerSM, saxpyGridStride<T>, blockSize, 0));

  int64_t gridSize = static_cast<int64_t>(numSMs) * (blocksPerSM > 0 ? blocksPerSM : 1);
  const int64_t needed = divUp<int64_t>(n, blockSize);
  if (gridSize > needed) gridSize = needed;

  saxpyGridStride<T><<<static_cast<unsigned int>(gridSize), blockSize, 0, stream>>>(a, x, y, out, n);
  checkCudaErrors(cudaGetLastError());
}
