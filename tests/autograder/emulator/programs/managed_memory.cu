template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n, const float* table, int* count) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n && table[i % 8] == float(i % 8)) out[i] = x[i] + y[i], atomicAdd_system(count, 1);
}
__managed__ int shared_with_host = 0;

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  float* table; int *count, *pinned, *mapped;
  cudaMallocManaged(&table, 8 * sizeof(float));
  cudaMallocManaged((void**)&count, sizeof(int), cudaMemAttachGlobal);
  cudaHostAlloc((void**)&pinned, sizeof(int), cudaHostAllocMapped);
  cudaMallocHost((void**)&mapped, sizeof(int));
  for (int i = 0; i < 8; ++i) table[i] = i;
  *count = 0; *pinned = 3; *mapped = 4; shared_with_host += 1;
  cudaMemLocation here = {}; here.type = cudaMemLocationTypeDevice; here.id = 0;
  cudaMemAdvise(table, 32, cudaMemAdviseSetReadMostly, here);
  cudaMemPrefetchAsync(table, 32, here, 0, stream);
  int* device = nullptr;
  cudaHostGetDevicePointer((void**)&device, pinned, 0);
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n, table, count);
  cudaStreamSynchronize(stream);
  if (*count != n || device == nullptr) cudaMemsetAsync(out, 0, n * sizeof(T), stream);
  cudaFree(table); cudaFree(count); cudaFreeHost(pinned); cudaFreeHost(mapped);
}
