// Cooperative groups: the block, tiles of a warp, and their reductions.
#pragma once

#include "cuda_emulator/warp.h"

namespace cooperative_groups {

class thread_block {
 public:
  void sync(CUDA_EMULATOR_LINE) const { ::cuda_emulator::barrier(line_, "block.sync"); }
  static unsigned thread_rank() { return ::cuda_emulator::current().linear; }
  static unsigned size() { return ::cuda_emulator::machine.count; }
  static unsigned num_threads() { return size(); }
  static uint3 group_index() { return ::cuda_emulator::machine.block; }
  static uint3 thread_index() { return ::cuda_emulator::current().index; }
  static dim3 group_dim() { return ::cuda_emulator::machine.block_dim; }
};
inline thread_block this_thread_block() { return {}; }

// `Size` neighbouring lanes of a warp, a power of two.
template <unsigned Size, class Parent = thread_block>
class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  static unsigned thread_rank() { return ::cuda_emulator::lane() % Size; }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned meta_group_rank() { return ::cuda_emulator::current().linear / Size; }
  static unsigned meta_group_size() { return (::cuda_emulator::machine.count + Size - 1) / Size; }
  void sync(CUDA_EMULATOR_LINE) const { ::cuda_emulator::give(0, mask(), "tile.sync", line_); }
  template <class T>
  T shfl(T value, int source, CUDA_EMULATOR_LINE) const { return __shfl_sync(mask(), value, source, Size, line_); }
  template <class T>
  T shfl_down(T value, unsigned delta, CUDA_EMULATOR_LINE) const { return __shfl_down_sync(mask(), value, delta, Size, line_); }
  template <class T>
  T shfl_up(T value, unsigned delta, CUDA_EMULATOR_LINE) const { return __shfl_up_sync(mask(), value, delta, Size, line_); }
  template <class T>
  T shfl_xor(T value, unsigned with, CUDA_EMULATOR_LINE) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(with), Size, line_);
  }
  int any(int predicate, CUDA_EMULATOR_LINE) const { return __any_sync(mask(), predicate, line_); }
  int all(int predicate, CUDA_EMULATOR_LINE) const { return __all_sync(mask(), predicate, line_); }
  unsigned ballot(int predicate, CUDA_EMULATOR_LINE) const {
    return __ballot_sync(mask(), predicate, line_) >> (::cuda_emulator::lane() / Size * Size);
  }
  static unsigned mask() {
    const unsigned ones = Size == 32 ? 0xffffffffu : (1u << (Size % 32)) - 1;
    return ones << (::cuda_emulator::lane() / Size * Size);
  }
};
template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <unsigned Size, class Parent, class T, class Combine>
T reduce(const thread_block_tile<Size, Parent>& tile, T value, Combine combine, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::reduce(tile.mask(), value, combine, "reduce", line_);
}

}  // namespace cooperative_groups
