// Launches by calls: the kernel's type may be cast away, as the C of the runtime wants it.
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
__global__ void __launch_bounds__(96) bounded(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const int64_t q = n / 4, rest = n - 4 * q;
  void* arguments[] = {&x, &y, &out, (void*)&q};
  cudaLaunchKernel((void*)add<T>, dim3((q + 255) / 256), dim3(256), arguments, 0, stream);
  x += q, y += q, out += q;
  cudaLaunchKernel(reinterpret_cast<const void*>(&add<T>), dim3((q + 255) / 256), dim3(256), arguments, 0, stream);
  x += q, y += q, out += q;
  cudaLaunchKernel(add<T>, dim3((q + 255) / 256), dim3(256), arguments, 0, stream);
  x += q, y += q, out += q;
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  config.gridDim = dim3((q + 255) / 256), config.blockDim = dim3(256), config.stream = stream;
  config.attrs = attribute, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, add<T>, x, y, out, q);
  x += q, y += q, out += q;
  int blocks, threads;
  cudaFuncAttributes attributes;
  cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, bounded<T>, 0, 0);
  cudaFuncGetAttributes(&attributes, (const void*)bounded<T>);
  if (rest > 0 && threads <= 96 && attributes.maxThreadsPerBlock == 96) bounded<T><<<1, threads, 0, stream>>>(x, y, out, rest);
}
