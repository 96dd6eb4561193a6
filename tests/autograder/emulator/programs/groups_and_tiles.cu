#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__device__ float sum_of(cg::thread_group g, float v) {
  for (int i = g.size() / 2; i > 0; i /= 2) { v += __shfl_down_sync(0xffffffffu, v, i); }
  g.sync();
  return v;
}
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  cg::thread_block cta = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cta);
  auto four = cg::tiled_partition<4>(warp);
  __shared__ int ok[8];
  int s = cg::reduce(warp, (int)warp.thread_rank(), cg::plus<int>());
  int m = cg::reduce(four, (int)warp.thread_rank(), cg::greater<int>());
  bool good = s == 496 && m == (int)(warp.thread_rank() / 4 * 4 + 3);
  good &= four.shfl((int)warp.thread_rank(), 1) == (int)(warp.thread_rank() / 4 * 4 + 1);
  good &= warp.ballot(warp.thread_rank() % 2) == 0xaaaaaaaau && four.any(1) && warp.all(1);
  good &= warp.match_any(warp.thread_rank() / 16) == (warp.thread_rank() < 16 ? 0xffffu : 0xffff0000u);
  float t = sum_of(warp, 1.0f);
  if (warp.thread_rank() == 0) ok[warp.meta_group_rank()] = good && t == 32.0f;
  cg::sync(cta);
  cg::grid_group grid = cg::this_grid();
  int64_t i = grid.thread_rank();
  if (i < n && ok[threadIdx.x / 32] && cta.group_index().x == blockIdx.x) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
