#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int incl = cg::inclusive_scan(tile, 1), excl = cg::exclusive_scan(tile, 2, cg::plus<int>());
  auto odd = cg::binary_partition(tile, tile.thread_rank() % 2 == 1);
  auto third = cg::labeled_partition(tile, (int)tile.thread_rank() % 3);
  bool ok = incl == (int)tile.thread_rank() + 1 && excl == 2 * (int)tile.thread_rank() && odd.size() == 8 && third.thread_rank() == tile.thread_rank() / 3;
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n && ok) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
