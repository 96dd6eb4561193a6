template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)blockDim.x * gridDim.x) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  int device, sms, blocks_per_sm, grid, block;
  cudaGetDevice(&device);
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, add<T>, 0, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, add<T>, block, 0);
  cudaFuncSetCacheConfig(add<T>, cudaFuncCachePreferL1);
  cudaFuncSetAttribute(add<T>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1);
  int cluster = 0; cudaDeviceGetAttribute(&cluster, cudaDevAttrL2CacheSize, device);
  if (sms != prop.multiProcessorCount || prop.regsPerBlock <= 0 || prop.l2CacheSize <= 0 || prop.maxThreadsDim[0] < block) return;
  add<<<min((int)((n + block - 1) / block), sms * blocks_per_sm), block, 0, stream>>>(x, y, out, n);
}
