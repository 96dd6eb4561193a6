__constant__ float factors[4];
__device__ int counter;
__device__ float table[16];
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n, const float* also) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n && factors[2] == 2.f && table[3] == 9.f && also[3] == 9.f) out[i] = x[i] + y[i];
  if (i == 0) counter = 17;
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const float host[4] = {0, 1, 2, 3};
  cudaMemcpyToSymbolAsync(factors, host, sizeof host, 0, cudaMemcpyHostToDevice, stream);
  float nine = 9; float* also;
  cudaMemcpyToSymbol(table, &nine, sizeof nine, 3 * sizeof nine);
  cudaGetSymbolAddress((void**)&also, table);
  size_t bytes; cudaGetSymbolSize(&bytes, table);
  if (bytes == 64) add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n, also);
  int seen = 0;
  cudaMemcpyFromSymbolAsync(&seen, counter, sizeof seen, 0, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  if (seen != 17) cudaMemset(out, 0, n * sizeof(T));
}
