// Wrong: as many blocks as there are whole tiles, so the elements behind the last one keep what was there.
#include <cute/tensor.hpp>

using namespace cute;

constexpr int THREADS = 256;
using Elements = Shape<Int<4 * THREADS>>;

template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const auto whole = make_layout(make_shape(n));
  // Each thread's part of what this block has, of a tensor or of the coordinates of its elements.
  const auto mine = [](auto tensor) {
    return local_partition(local_tile(tensor, Elements{}, make_coord(blockIdx.x)), Layout<Int<THREADS>>{}, threadIdx.x);
  };
  const auto at = mine(make_identity_tensor(shape(whole)));
  const auto left = mine(make_tensor(make_gmem_ptr(x), whole));
  const auto right = mine(make_tensor(make_gmem_ptr(y), whole));
  auto sum = mine(make_tensor(make_gmem_ptr(out), whole));
  CUTE_UNROLL
  for (int i = 0; i < size(sum); ++i) {
    if (elem_less(at(i), shape(whole))) sum(i) = static_cast<T>(static_cast<float>(left(i)) + static_cast<float>(right(i)));
  }
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<static_cast<unsigned>(n < 4 * THREADS ? 1 : n / (4 * THREADS)), THREADS, 0, stream>>>(x, y, out, n);
}
