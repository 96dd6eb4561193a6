template <class T> struct SharedMemory {
  __device__ inline operator T*() { extern __shared__ int __smem[]; return (T*)__smem; }
  __device__ inline operator const T*() const { extern __shared__ int __smem[]; return (T*)__smem; }
};
template <> struct SharedMemory<double> {
  __device__ inline operator double*() { extern __shared__ double __smem_d[]; return (double*)__smem_d; }
};
template <typename T, unsigned blockSize>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  T* s = SharedMemory<T>();
  __shared__ union { float f[4]; int i[4]; } both;
  int64_t i = blockIdx.x * (int64_t)blockSize + threadIdx.x;
  if (threadIdx.x < 4) both.f[threadIdx.x] = 1.0f;
  if (i < n) s[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n && both.i[3] == __float_as_int(1.0f)) out[i] = s[threadIdx.x] + y[i];
}
#define CASE(N) case N: add<T, N><<<(n + N - 1) / N, N, N * sizeof(T), stream>>>(x, y, out, n); break

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  switch (n > 500 ? 256 : 64) {
    CASE(64);
    CASE(256);
    default: break;
  }
}
