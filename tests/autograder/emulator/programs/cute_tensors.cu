#include <cute/tensor.hpp>
#include <cute/algorithm/copy.hpp>

using namespace cute;

// 32 x 32 tiles in shared memory, swizzled, between layouts of the same vector.
using Swizzled = decltype(composition(Swizzle<3, 2, 3>{}, Layout<Shape<_32, _32>, Stride<_32, _1>>{}));
static_assert(size(Layout<Shape<_4, Shape<_2, _8>>>{}) == 64);
static_assert(is_same_v<decltype(coalesce(Layout<Shape<_2, _8>, Stride<_1, _2>>{})), Layout<_16, _1>>);
static_assert(cosize(logical_divide(Layout<_64>{}, Layout<_8>{})) == 64);

template <typename T>
__global__ void add_tile(const T* x, const T* y, T* out, int64_t n) {
  __shared__ alignas(128) T kept[cosize_v<Swizzled>];
  auto tile = make_tensor(make_smem_ptr(kept), Swizzled{});
  const auto columns = make_layout(make_shape(_32{}, n / 32));
  const auto X = make_tensor(make_gmem_ptr(x), columns);
  const auto Y = make_tensor(make_gmem_ptr(y), columns);
  auto Out = make_tensor(make_gmem_ptr(out), columns);
  const auto block = make_coord(0, blockIdx.x);
  const auto bX = local_tile(X, Shape<_32, _32>{}, block);
  const auto by_column = make_layout(Shape<_32, _4>{});
  copy(local_partition(bX, by_column, threadIdx.x), local_partition(tile, by_column, threadIdx.x));
  __syncthreads();
  // Others' elements: rows first.
  const auto by_row = make_layout(Shape<_4, _32>{}, LayoutRight{});
  auto sums = make_tensor_like(local_partition(tile, by_row, threadIdx.x));
  copy(local_partition(tile, by_row, threadIdx.x), sums);
  axpby(T(1), local_partition(local_tile(Y, Shape<_32, _32>{}, block), by_row, threadIdx.x), T(1), sums);
  copy(sums, local_partition(local_tile(Out, Shape<_32, _32>{}, block), by_row, threadIdx.x));
}

template <typename T>
__global__ void add_rest(const T* x, const T* y, T* out, int n) {
  const auto whole = make_layout(n);
  for (int i = threadIdx.x; i < size(whole); i += blockDim.x) out[whole(i)] = x[whole(i)] + y[whole(i)];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  const int tiles = static_cast<int>(n / 1024), done = 1024 * tiles;
  if (tiles > 0) add_tile<<<tiles, 128, 0, stream>>>(x, y, out, 1024 * int64_t{tiles});
  if (done < n) add_rest<<<1, 128, 0, stream>>>(x + done, y + done, out + done, static_cast<int>(n - done));
}
