// The launch is captured into a CUDA graph on a private stream, and the graph is updated and launched on the caller's.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CUDA_OK(expr)                                                                        \
  {                                                                                          \
    const cudaError_t e_ = (expr);                                                           \
    if (e_ != cudaSuccess) {                                                                 \
      fprintf(stderr, "%s failed: %s (line %d)\n", #expr, cudaGetErrorString(e_), __LINE__); \
      abort();                                                                               \
    }                                                                                        \
  }

template <typename T>
__global__ void __launch_bounds__(512) axpy(float a, const T* x, const T* y, T* out, int64_t n) {
  const int64_t i0 = (static_cast<int64_t>(blockIdx.x) * 512 + threadIdx.x) * 2;
  float r0 = 0.0f, r1 = 0.0f;
  const bool has0 = i0 < n, has1 = i0 + 1 < n;
  if (has0) r0 = fmaf(a, float(x[i0]), float(y[i0]));
  if (has1) r1 = fmaf(a, float(x[i0 + 1]), float(y[i0 + 1]));
  if (has0) out[i0] = T(r0);
  if (has1) out[i0 + 1] = T(r1);
}

// One executable graph for each element type. Every call records the launch anew, because its arguments change, and
// patches the executable in place; only if the driver will not take the patch is it built again.
template <typename T>
struct GraphCache {
  cudaStream_t recorder = nullptr;
  cudaGraphExec_t exec = nullptr;
};

template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  static GraphCache<T> cache;
  if (cache.recorder == nullptr) {
    CUDA_OK(cudaStreamCreateWithFlags(&cache.recorder, cudaStreamNonBlocking));
    // Asking for the attributes loads the kernel now, and not while something is captured.
    cudaFuncAttributes attributes;
    CUDA_OK(cudaFuncGetAttributes(&attributes, axpy<T>));
  }

  cudaGraph_t graph = nullptr;
  CUDA_OK(cudaStreamBeginCapture(cache.recorder, cudaStreamCaptureModeThreadLocal));
  axpy<T><<<static_cast<unsigned>((n + 1023) / 1024), 512, 0, cache.recorder>>>(a, x, y, out, n);
  CUDA_OK(cudaStreamEndCapture(cache.recorder, &graph));

  if (cache.exec != nullptr) {
    cudaGraphExecUpdateResultInfo info;
    if (cudaGraphExecUpdate(cache.exec, graph, &info) != cudaSuccess) {
      cudaGetLastError();
      CUDA_OK(cudaGraphExecDestroy(cache.exec));
      cache.exec = nullptr;
    }
  }
  if (cache.exec == nullptr) CUDA_OK(cudaGraphInstantiate(&cache.exec, graph, 0));
  CUDA_OK(cudaGraphLaunch(cache.exec, stream));
  CUDA_OK(cudaGraphDestroy(graph));
}
