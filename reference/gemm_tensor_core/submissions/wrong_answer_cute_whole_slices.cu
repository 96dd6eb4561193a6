// Wrong: takes whole slices of k only, so what is left over at the end counts for nothing.
#include <cute/tensor.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

using namespace cute;

// Rows and columns of c that a block of 128 threads has, and the slice of k that it keeps in shared memory.
constexpr int TILE = 64, SLICE = 64, THREADS = 128;

#if defined(CUTE_ARCH_MMA_SM90A_ENABLED)
template <typename E>
using Slice = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<E>{}, Shape<Int<TILE>, Int<SLICE>>{}));
#else
template <typename E>
using Slice = Layout<Shape<Int<TILE>, Int<SLICE>>, Stride<Int<SLICE>, _1>>;
#endif

template <typename E>
__global__ void __launch_bounds__(THREADS)
    gemm_kernel(const E* a, const E* b, E* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
                int64_t c_row_stride) {
  __shared__ alignas(1024) E a_slice[TILE * SLICE], b_slice[TILE * SLICE];
  const auto sA = make_tensor(make_smem_ptr(a_slice), Slice<E>{});
  const auto sB = make_tensor(make_smem_ptr(b_slice), Slice<E>{});
  const auto A = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(a_row_stride, _1{}));
  const auto B = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(b_row_stride, _1{}));
  const auto C = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(c_row_stride, _1{}));
  auto gC = local_tile(C, Shape<Int<TILE>, Int<TILE>>{}, make_coord(blockIdx.y, blockIdx.x));
  const auto iC = local_tile(make_identity_tensor(shape(C)), Shape<Int<TILE>, Int<TILE>>{}, make_coord(blockIdx.y, blockIdx.x));

#if defined(CUTE_ARCH_MMA_SM90A_ENABLED)
  const auto mma = make_tiled_mma(GMMA::ss_op_selector<E, E, float, Shape<Int<TILE>, Int<TILE>, Int<SLICE>>>());
  const auto thread = mma.get_slice(threadIdx.x);
  auto to = thread.partition_C(gC);
  const auto at = thread.partition_C(iC);
  auto sums = thread.make_fragment_C(to);
#else
  const auto threads = Layout<Shape<_16, _8>>{};
  auto to = local_partition(gC, threads, threadIdx.x);
  const auto at = local_partition(iC, threads, threadIdx.x);
  auto sums = make_tensor<float>(shape(to));
#endif
  clear(sums);

  for (int64_t start = 0; start + SLICE <= k; start += SLICE) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += THREADS) {
      const int row = i / SLICE, l = i % SLICE;
      const int64_t a_row = int64_t{blockIdx.y} * TILE + row, b_row = int64_t{blockIdx.x} * TILE + row;
      sA(row, l) = a_row < m && start + l < k ? A(a_row, start + l) : E(0.0f);
      sB(row, l) = b_row < n && start + l < k ? B(b_row, start + l) : E(0.0f);
    }
#if defined(CUTE_ARCH_MMA_SM90A_ENABLED)
    // What was written here is seen by the tensor cores, which read shared memory by another way.
    tma_store_fence();
    __syncthreads();
    const auto left = thread.make_fragment_A(thread.partition_A(sA));
    const auto right = thread.make_fragment_B(thread.partition_B(sB));
    warpgroup_fence_operand(sums);
    warpgroup_arrive();
    gemm(mma, left, right, sums);
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    warpgroup_fence_operand(sums);
#else
    __syncthreads();
    const auto left = local_partition(sA, threads, threadIdx.x, Step<_1, X>{});
    const auto right = local_partition(sB, threads, threadIdx.x, Step<X, _1>{});
    for (int l = 0; l < SLICE; ++l) {
      CUTE_UNROLL
      for (int i = 0; i < size<0>(sums); ++i) {
        CUTE_UNROLL
        for (int j = 0; j < size<1>(sums); ++j) {
          sums(i, j) += static_cast<float>(left(i, l)) * static_cast<float>(right(j, l));
        }
      }
    }
#endif
    __syncthreads();
  }
  CUTE_UNROLL
  for (int i = 0; i < size(sums); ++i) {
    if (elem_less(at(i), shape(C))) to(i) = static_cast<E>(sums(i));
  }
}

// CuTe's own types of 16 bits have the names by which its instructions are selected.
template <typename E, typename T>
void launch(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(ceil_div(n, TILE)), static_cast<unsigned>(ceil_div(m, TILE)));
  gemm_kernel<E><<<blocks, THREADS, 0, stream>>>(reinterpret_cast<const E*>(a), reinterpret_cast<const E*>(b),
                                                 reinterpret_cast<E*>(c), m, n, k, a_row_stride, b_row_stride,
                                                 c_row_stride);
}

void gemm(const __half* a, const __half* b, __half* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride,
          int64_t b_row_stride, int64_t c_row_stride, cudaStream_t stream) {
  launch<half_t>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, stream);
}
#if !defined(CUDA_EMULATOR)
void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int64_t m, int64_t n, int64_t k,
          int64_t a_row_stride, int64_t b_row_stride, int64_t c_row_stride, cudaStream_t stream) {
  launch<bfloat16_t>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, stream);
}
#endif
