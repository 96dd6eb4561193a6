// Vector add, first milestone: right, with a run of 32 neighbouring elements for every thread.
//
// That is how one would divide the work between the cores of a processor. On a GPU the 32 threads of a warp then load from 32
// places that lie far apart, all at once: each load fetches a whole sector of 32 bytes for every thread, of which it uses one
// element now. The others are used later, if they are still in the cache then.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int RUN = 32;

template <typename T>
__global__ void add_runs(const T* x, const T* y, T* out, int64_t n) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * RUN;
  for (int64_t i = first; i < first + RUN && i < n; ++i) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const int64_t per_block = static_cast<int64_t>(THREADS) * RUN;
  add_runs<<<static_cast<unsigned>((n + per_block - 1) / per_block), THREADS, 0, stream>>>(x, y, out, n);
}
