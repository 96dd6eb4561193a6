__device__ float atomicMaxFloat(float* address, float val) {
  int* as_int = (int*)address;
  int old = *as_int, assumed;
  do { assumed = old; old = atomicCAS(as_int, assumed, __float_as_int(fmaxf(val, __int_as_float(assumed)))); } while (assumed != old);
  return __int_as_float(old);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
__device__ double atomicAdd(double* address, double val) { return val; }
#endif
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n, float* best, unsigned* wraps, double* wide, float4* four, unsigned long long* big) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  __shared__ int local;
  if (threadIdx.x == 0) local = 0;
  __syncthreads();
  atomicAdd_block(&local, 1);

  atomicMaxFloat(best, (float)threadIdx.x);
  atomicInc(wraps, 9u);
  atomicAdd(wide, 0.5);
  atomicAdd(four, make_float4(1, 2, 3, 4));
  atomicMin_system(big, (unsigned long long)i);
  __syncthreads();
  if (i < n && local == 256) out[i] = x[i] + y[i];
}
template <typename T>
__global__ void check(T* out, int64_t n, float* best, unsigned* wraps, double* wide, float4* four, unsigned long long* big, int threads) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  bool ok = *best == 255.f && *wraps == threads % 10 && *wide == threads * 0.5 && four->w == threads * 4.f && *big == 0;
  if (i < n && !ok) out[i] = T(0.f);
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  char* m; cudaMalloc(&m, 64); cudaMemset(m, 0, 64);
  float* best = (float*)m; unsigned* wraps = (unsigned*)(m + 4); double* wide = (double*)(m + 8); float4* four = (float4*)(m + 16); auto* big = (unsigned long long*)(m + 32);
  cudaMemset(big, 0xff, 8);
  int blocks = (n + 255) / 256;
  add<<<blocks, 256, 0, stream>>>(x, y, out, n, best, wraps, wide, four, big);
  check<<<blocks, 256, 0, stream>>>(out, n, best, wraps, wide, four, big, blocks * 256);
  cudaFree(m);
}
