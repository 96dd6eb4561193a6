template <typename T>
__global__ void add2d(const T* a, size_t pitch, const T* y, T* out, int rows, int columns, int64_t n) {
  int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows || c >= columns) return;
  const T* row = (const T*)((const char*)a + r * pitch);
  int64_t i = (int64_t)r * columns + c;
  if (i < n) out[i] = row[c] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const int columns = 100, rows = n / columns;
  T* a; size_t pitch = 0;
  if (rows > 0) {
    cudaMallocPitch((void**)&a, &pitch, columns * sizeof(T), rows);
    cudaMemset2D(a, pitch, 0, columns * sizeof(T), rows);
    cudaMemcpy2DAsync(a, pitch, x, columns * sizeof(T), columns * sizeof(T), rows, cudaMemcpyDeviceToDevice, stream);
    dim3 threads(32, 8), blocks(ceil(columns / 32.0), ceil(rows / 8.0));
    add2d<<<blocks, threads, 0, stream>>>(a, pitch, y, out, rows, columns, n);
    cudaFree(a);
  }
  const int64_t done = (int64_t)rows * columns;
  if (done < n) add2d<<<dim3(4), dim3(32), 0, stream>>>(x + done, 0, y + done, out + done, 1, (int)(n - done), n - done);
}
