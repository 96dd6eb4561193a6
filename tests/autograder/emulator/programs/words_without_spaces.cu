// CUDA's words are macros: none of them is the suffix of the literal it touches.
extern "C"__global__
void add_floats(const float* x, const float* y, float* out, int n) {
  __shared__ float sums[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sums[threadIdx.x] = x[i] + y[i];
  if (i < n) out[i] = sums[threadIdx.x];
}

#ifndef __global__
#error "a file that asks finds the words defined"
#endif

extern "C"__device__ float twice(float x) { return x + x; }

template <typename T>
void vector_add(const T* x, const T* y, T* out, int n, cudaStream_t stream) {
  add_floats<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
