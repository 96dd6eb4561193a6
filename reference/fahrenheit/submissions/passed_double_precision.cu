// Honest: literals without an f, so that the arithmetic is in double precision and rounded once.
__global__ void convert(const float *celsius, float *fahrenheit, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    fahrenheit[i] = celsius[i] * 9.0 / 5.0 + 32;
  }
}

void fahrenheit(const float *x, float *out, int n, cudaStream_t stream) {
  convert<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
}
