#include <assert.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define MAX_1024_THREADS_BLOCKS 2
#else
#define MAX_1024_THREADS_BLOCKS 1
#endif
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
inline void cuda_check(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess) { printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error)); exit(EXIT_FAILURE); }
}
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))
template <class ElementType>
struct alignas(16) Packed128 {
  Packed128() = default;
  __device__ explicit Packed128(int4 bits) { static_assert(sizeof(bits) == sizeof(payload), "Size mismatch."); memcpy(&payload, &bits, sizeof(bits)); }
  __device__ static Packed128 constant(ElementType value) { Packed128 result; for (int k = 0; k < size; ++k) result.payload[k] = value; return result; }
  __device__ ElementType& operator[](int index) { return payload[index]; }
  __device__ const ElementType& operator[](int index) const { return payload[index]; }
  __device__ int4 get_bits() const { int4 bits; memcpy(&bits, &payload, sizeof(bits)); return bits; }
  static constexpr const size_t size = sizeof(int4) / sizeof(ElementType);
  ElementType payload[size];
};
template <class T> __device__ Packed128<T> load128cs(const T* address) { return Packed128<T>{__ldcs(reinterpret_cast<const int4*>(address))}; }
template <class T> __device__ void store128cs(T* target, Packed128<T> value) { __stcs(reinterpret_cast<int4*>(target), value.get_bits()); }
template <typename T>
__global__ void __launch_bounds__(512, MAX_1024_THREADS_BLOCKS) add(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ out, int64_t n, bool wide) {
  constexpr int W = Packed128<T>::size;
  int64_t at = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * W;
  if (wide && at + W <= n) {
    Packed128<T> a = load128cs(x + at), b = load128cs(y + at), c = Packed128<T>::constant(T(0.f));
    for (int k = 0; k < W; ++k) c[k] = (T)((float)a[k] + (float)b[k]);
    store128cs(out + at, c);
  } else {
    for (int64_t k = at; k < min(at + W, n); ++k) __stcs(out + k, (T)((float)__ldcs(x + k) + (float)__ldg(y + k)));
  }
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const bool wide = ((uintptr_t)x | (uintptr_t)y | (uintptr_t)out) % 16 == 0;
  const int block = 512;
  add<<<CEIL_DIV(n, (int64_t)(block * Packed128<T>::size)), block, 0, stream>>>(x, y, out, n, wide);
  cudaCheck(cudaGetLastError());
}
