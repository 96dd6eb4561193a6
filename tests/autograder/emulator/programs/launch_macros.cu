// Launches, kernels, shared memory and inline PTX that macros hide; PTX that is never reached.
#define LAUNCH(kernel, blocks, threads, stream, ...) kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#define KERNEL(threads) __global__ void __launch_bounds__(threads)
#define SHARED __shared__
#define PTX(text) asm volatile(text)

__device__ unsigned never() {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane)::"memory");
  PTX("trap;");
  return lane;
}

template <typename T>
KERNEL(128)
add(const T* x, const T* y, T* out, int64_t n) {
  SHARED float s[128];
  const int64_t i = blockIdx.x * 128ll + threadIdx.x;
#if 0
  asm volatile("bar.sync 0;");
#elif __CUDA_ARCH__ < 700
#error "too old"
#endif
  s[threadIdx.x] = 1;
  asm volatile("" ::: "memory");
  __syncthreads();
  if (s[127 - threadIdx.x] == 0) asm("trap;");
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  LAUNCH(add, (n + 127) / 128,
         128, stream, x, y,
         out, n);
}
