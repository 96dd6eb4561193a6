// Beginner with atomics: every thread adds its one element into a shared double, and every block adds that to a
// global one.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <stdio.h>
#include <stdint.h>

__device__ double g_sum;
__device__ int g_max;

// Floats in an order that ints have too, so that atomicMax can be used.
__device__ int float_to_ordered(float f) {
  int i = __float_as_int(f);
  if (i >= 0) return i;
  return i ^ 0x7fffffff;
}

__device__ float ordered_to_float(int i) {
  if (i >= 0) return __int_as_float(i);
  return __int_as_float(i ^ 0x7fffffff);
}

__global__ void init() {
  g_sum = 0.0;
  g_max = float_to_ordered(-INFINITY);
}

template <typename T>
__global__ void add_all(const T* x, int64_t n) {
  __shared__ double s_sum;
  __shared__ int s_max;
  if (threadIdx.x == 0) {
    s_sum = 0.0;
    s_max = float_to_ordered(-INFINITY);
  }
  __syncthreads();

  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float value = (float)x[i];
    atomicAdd(&s_sum, (double)value);
    atomicMax(&s_max, float_to_ordered(value));
  }
  __syncthreads();

  if (threadIdx.x == 0) {
    atomicAdd(&g_sum, s_sum);
    atomicMax(&g_max, s_max);
  }
}

template <typename T>
__global__ void finish(float* total, T* largest) {
  *total = (float)g_sum;
  *largest = (T)ordered_to_float(g_max);
}

template <typename T>
void reduce(const T* x, float* total, T* largest, int64_t n, cudaStream_t stream) {
  int threads = 256;
  int blocks = (int)((n + threads - 1) / threads);
  init<<<1, 1, 0, stream>>>();
  add_all<<<blocks, threads, 0, stream>>>(x, n);
  finish<<<1, 1, 0, stream>>>(total, largest);
  cudaError_t err = cudaGetLastError();
  if (err != cudaSuccess) printf("launch failed: %s\n", cudaGetErrorString(err));
}
