#include <cuda_runtime_api.h>
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t err_ = (call); if (err_ != cudaSuccess) { fprintf(stderr, "%s at %s:%d: %s (%s)\n", #call, __FILE__, __LINE__, cudaGetErrorString(err_), cudaGetErrorName(err_)); exit(EXIT_FAILURE); } } while (0)
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  constexpr int STREAMS = 3;
  cudaStream_t streams[STREAMS];
  cudaEvent_t start, stop, ready;
  int low, high;
  CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  CHECK(cudaEventRecord(ready, stream));
  T* copy = nullptr;
  CHECK(cudaMallocAsync((void**)&copy, n * sizeof(T) + 1, stream));
  CHECK(cudaStreamSynchronize(stream));
  const int64_t chunk = (n + STREAMS - 1) / STREAMS;
  for (int s = 0; s < STREAMS; ++s) {
    if (s == 2) CHECK(cudaStreamCreateWithPriority(&streams[s], cudaStreamNonBlocking, high));
    else if (s == 1) CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    else CHECK(cudaStreamCreate(&streams[s]));
    CHECK(cudaStreamWaitEvent(streams[s], ready, 0));
    const int64_t begin = s * chunk, count = begin < n ? min(chunk, n - begin) : 0;
    if (count > 0) {
      CHECK(cudaMemcpyAsync(copy + begin, x + begin, count * sizeof(T), cudaMemcpyDeviceToDevice, streams[s]));
      add<T><<<(count + 127) / 128, 128, 0, streams[s]>>>(copy + begin, y + begin, out + begin, count);
      CHECK(cudaGetLastError());
    }
  }
  for (int s = 0; s < STREAMS; ++s) { CHECK(cudaStreamSynchronize(streams[s])); CHECK(cudaStreamQuery(streams[s])); CHECK(cudaStreamDestroy(streams[s])); }
  CHECK(cudaEventRecord(stop, 0));
  CHECK(cudaEventSynchronize(stop));
  CHECK(cudaEventQuery(stop));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  CHECK(cudaFreeAsync(copy, stream));
  CHECK(cudaEventDestroy(start)); CHECK(cudaEventDestroy(stop)); CHECK(cudaEventDestroy(ready));
  CHECK(cudaPeekAtLastError());
  CHECK(cudaDeviceSynchronize());
}
