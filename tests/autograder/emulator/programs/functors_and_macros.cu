#include <type_traits>
template <typename T> struct Plus { __host__ __device__ __forceinline__ T operator()(const T& a, const T& b) const { return a + b; } };
namespace detail {
template <typename T, typename Op, int ITEMS>
static __global__ void __launch_bounds__(128) apply(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ out, const int64_t n, Op op) {
  const int64_t base = static_cast<int64_t>(blockIdx.x) * blockDim.x * ITEMS + threadIdx.x;
  T a[ITEMS], b[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) { const int64_t i = base + k * blockDim.x; if (i < n) { a[k] = x[i]; b[k] = y[i]; } }
#pragma unroll ITEMS
  for (int k = 0; k < ITEMS; ++k) { const int64_t i = base + k * blockDim.x; if (i < n) out[i] = op(a[k], b[k]); }
}
}  // namespace detail
template <typename Kernel, typename... Args>
void launch(Kernel kernel, dim3 grid, dim3 block, cudaStream_t stream, Args... args) { kernel<<<grid, block, 0, stream>>>(args...); }
#define DISPATCH(TYPE, ...) [&] { using scalar_t = TYPE; __VA_ARGS__(); }()

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  DISPATCH(T, [&] {
    launch(detail::apply<scalar_t, Plus<scalar_t>, 4>, dim3((n + 511) / 512), dim3(128), stream, x, y, out, n, Plus<scalar_t>());
  });
}
