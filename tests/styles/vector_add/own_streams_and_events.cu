// Four streams of its own, made and destroyed in every call, each add a quarter; events fork them off and join them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kStreams = 4;

template <typename T>
__global__ void add_chunk(const T* x, const T* y, T* out, int64_t begin, int64_t end) {
  const int64_t i = begin + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < end) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  cudaStream_t workers[kStreams];
  cudaEvent_t ready, done[kStreams];
  cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  cudaEventRecord(ready, stream);

  const int threads = 256;
  const int64_t chunk = (n + kStreams - 1) / kStreams;
  for (int s = 0; s < kStreams; ++s) {
    cudaStreamCreateWithFlags(&workers[s], cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming);
    cudaStreamWaitEvent(workers[s], ready, 0);
    const int64_t begin = s * chunk;
    const int64_t end = begin + chunk < n ? begin + chunk : n;
    if (begin < end) {
      const unsigned blocks = static_cast<unsigned>((end - begin + threads - 1) / threads);
      add_chunk<T><<<blocks, threads, 0, workers[s]>>>(x, y, out, begin, end);
    }
    cudaEventRecord(done[s], workers[s]);
    cudaStreamWaitEvent(stream, done[s], 0);
  }

  // Destroying is allowed while work is pending: the runtime releases them when it is done.
  for (int s = 0; s < kStreams; ++s) {
    cudaEventDestroy(done[s]);
    cudaStreamDestroy(workers[s]);
  }
  cudaEventDestroy(ready);
}
