// A CUDA graph of four kernel nodes is captured on its own stream in every call, instantiated, launched, waited for.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t status = (call);                                                     \
    if (status != cudaSuccess) std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
  } while (0)

template <typename T>
__global__ void saxpy_part(float a, const T* x, const T* y, T* out, int64_t begin, int64_t end) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = begin + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end; i += step) {
    out[i] = static_cast<T>(a * static_cast<float>(x[i]) + static_cast<float>(y[i]));
  }
}

template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  constexpr int kParts = 4, kThreads = 256;
  cudaStream_t recorder;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  CHECK(cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking));

  CHECK(cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal));
  const int64_t part = (n + kParts - 1) / kParts;
  for (int64_t begin = 0; begin < n; begin += part) {
    const int64_t end = begin + part < n ? begin + part : n;
    int64_t blocks = (end - begin + kThreads - 1) / kThreads;
    if (blocks > 4096) blocks = 4096;
    saxpy_part<T><<<static_cast<unsigned>(blocks), kThreads, 0, recorder>>>(a, x, y, out, begin, end);
  }
  CHECK(cudaStreamEndCapture(recorder, &graph));

  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  CHECK(cudaGraphLaunch(instance, stream));
  CHECK(cudaStreamSynchronize(stream));

  CHECK(cudaGraphExecDestroy(instance));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(recorder));
}
