// Keeps the compiler busy with the compositions of more layouts than anybody waits for.
#include <cute/tensor.hpp>
#include <cuda_fp16.h>

#include <cstdint>

template <int N, int M>
struct Tree {
  using Layout = decltype(composition(cute::Layout<cute::Shape<cute::Int<M + 1>, cute::_4>>{}, cute::Layout<cute::Int<M + 1>>{}));
  static constexpr int value = decltype(cute::size(Layout{}))::value + Tree<N - 1, 2 * M>::value + Tree<N - 1, 2 * M + 1>::value;
};
template <int M>
struct Tree<0, M> {
  static constexpr int value = M;
};
static_assert(Tree<DEPTH, 1>::value != 1);

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, y, out, n);
}
