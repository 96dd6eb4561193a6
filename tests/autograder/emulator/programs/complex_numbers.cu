#include <cuComplex.h>

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  cuFloatComplex a = make_cuFloatComplex(1, 2), b = cuCmulf(a, cuConjf(a));
  cuDoubleComplex q = cuCdiv(make_cuDoubleComplex(5, 0), make_cuDoubleComplex(0, 5));
  if (i < n && cuCrealf(b) == 5.f && cuCimagf(b) == 0.f && q.y == -1.0 && cuCabs(make_cuDoubleComplex(3, 4)) == 5.0) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
