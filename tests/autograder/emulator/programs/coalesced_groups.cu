#include <cooperative_groups.h>
using namespace cooperative_groups;
__device__ int aggregated(int* counter) {
  auto g = coalesced_threads();
  int before = 0;
  if (g.thread_rank() == 0) before = atomicAdd(counter, g.size());
  return g.shfl(before, 0) + g.thread_rank();
}
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n, int* counter, int* seen) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i % 3 == 1) { int at = aggregated(counter); if (at < 4096) seen[at] = 1; }
  unsigned mask = __activemask();
  if (i < n && mask != 0) out[i] = x[i] + y[i];
}
template <typename T>
__global__ void check(T* out, int64_t n, const int* counter, const int* seen, int total) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  int wanted = 0;
  for (int k = 0; k < total; ++k) wanted += k % 3 == 1;
  bool bad = *counter != wanted;
  for (int k = 0; k < min(wanted, 4096); ++k) bad |= seen[k] != 1;
  if (i < n && bad) out[i] = T(0.f);
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  int *c, *s;
  cudaMalloc(&c, 4); cudaMalloc(&s, 4096 * 4);
  cudaMemsetAsync(c, 0, 4, stream); cudaMemsetAsync(s, 0, 4096 * 4, stream);
  int blocks = (n + 255) / 256;
  add<<<blocks, 256, 0, stream>>>(x, y, out, n, c, s);
  if (n < 2000) check<<<blocks, 256, 0, stream>>>(out, n, c, s, blocks * 256);
  cudaFreeAsync(c, stream); cudaFreeAsync(s, stream);
}
