// Two tiles of shared memory, one of which is copied while the other is used.
#include <cuda_pipeline.h>

template <int TILES>
__global__ void reversed(const int4* from, int4* to) {
  __shared__ int4 s[2][64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&s[0][t], from + t, sizeof(int4));
  __pipeline_commit();
  for (int k = 1; k <= TILES; ++k) {
    if (k < TILES) __pipeline_memcpy_async(&s[k % 2][t], from + k * 64 + t, sizeof(int4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    to[(k - 1) * 64 + t] = s[(k - 1) % 2][63 - t];
    __syncthreads();
  }
}

__global__ void numbers(int4* into) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  into[i] = make_int4(i, 1, 2, 3);
}

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n, const int4* moved) {
  const int64_t i = blockIdx.x * 128ll + threadIdx.x;
  const int k = i % 256;
  if (i < n && moved[k].x == k / 64 * 64 + 63 - k % 64) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  int4 *from, *to;
  cudaMalloc(&from, 256 * sizeof(int4));
  cudaMalloc(&to, 256 * sizeof(int4));
  numbers<<<4, 64, 0, stream>>>(from);
  reversed<4><<<1, 64, 0, stream>>>(from, to);
  add<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n, to);
  cudaFree(from);
  cudaFree(to);
}
