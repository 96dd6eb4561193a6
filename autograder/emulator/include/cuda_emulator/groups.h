// Cooperative groups: the block, tiles of a warp and other groups of its lanes, with what they tell each other. The grid is
// there to count in; its barrier needs a cooperative launch, in which all blocks run at once.
#pragma once

#include "cuda_emulator/warp.h"

namespace cooperative_groups {

namespace emulated {
inline unsigned before_me(unsigned mask) { return __builtin_popcount(mask & ((1u << ::cuda_emulator::lane()) - 1)); }
// The lane that is the `rank`-th of the mask.
inline unsigned lane_of(unsigned mask, unsigned rank) {
  for (; rank > 0 && mask != 0; --rank) mask &= mask - 1;
  return mask == 0 ? ::cuda_emulator::warp_size : static_cast<unsigned>(__builtin_ctz(mask));
}
// Bits of a warp as bits of the group's own ranks.
inline unsigned packed(unsigned bits, unsigned mask) {
  unsigned out = 0;
  for (unsigned rank = 0; mask != 0; mask &= mask - 1, ++rank) out |= (bits >> __builtin_ctz(mask) & 1) << rank;
  return out;
}
}  // namespace emulated

// Any group by its members: a block, or lanes of a warp.
class thread_group {
 public:
  void sync(CUDA_EMULATOR_LINE) const {
    if (mask_ == 0) {
      ::cuda_emulator::barrier(line_, "group.sync");
    } else {
      ::cuda_emulator::give(0, mask_, "group.sync", line_);
    }
  }
  unsigned size() const { return mask_ == 0 ? ::cuda_emulator::machine.count : __builtin_popcount(mask_); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return mask_ == 0 ? ::cuda_emulator::current().linear : emulated::before_me(mask_); }
  bool is_valid() const { return true; }
  // The lanes that belong to it; none where it is the whole block.
  unsigned lanes() const { return mask_; }

 protected:
  explicit thread_group(unsigned mask) : mask_(mask) {}
  unsigned mask_;
};

class thread_block : public thread_group {
 public:
  struct arrival_token {};
  thread_block() : thread_group(0) {}
  void sync(CUDA_EMULATOR_LINE) const { ::cuda_emulator::barrier(line_, "block.sync"); }
  arrival_token barrier_arrive() const { return {}; }
  void barrier_wait(arrival_token, CUDA_EMULATOR_LINE) const { ::cuda_emulator::barrier(line_, "block.barrier_wait"); }
  static unsigned thread_rank() { return ::cuda_emulator::current().linear; }
  static unsigned size() { return ::cuda_emulator::machine.count; }
  static unsigned num_threads() { return size(); }
  static uint3 group_index() { return ::cuda_emulator::machine.block; }
  static uint3 thread_index() { return ::cuda_emulator::current().index; }
  static dim3 group_dim() { return ::cuda_emulator::machine.block_dim; }
  static dim3 dim_threads() { return group_dim(); }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  bool is_valid() const { return false; }
  void sync(CUDA_EMULATOR_LINE) const {
    ::cuda_emulator::gpu_only("The barrier of a grid (grid_group::sync, a cooperative launch)", line_);
  }
  static unsigned long long num_blocks() {
    const dim3 grid = ::cuda_emulator::machine.grid_dim;
    return 1ull * grid.x * grid.y * grid.z;
  }
  static unsigned long long block_rank() {
    const dim3 grid = ::cuda_emulator::machine.grid_dim;
    const uint3 block = ::cuda_emulator::machine.block;
    return (1ull * block.z * grid.y + block.y) * grid.x + block.x;
  }
  static unsigned long long num_threads() { return num_blocks() * ::cuda_emulator::machine.count; }
  static unsigned long long size() { return num_threads(); }
  static unsigned long long thread_rank() {
    return block_rank() * ::cuda_emulator::machine.count + ::cuda_emulator::current().linear;
  }
  static dim3 dim_blocks() { return ::cuda_emulator::machine.grid_dim; }
  static dim3 group_dim() { return dim_blocks(); }
  static uint3 block_index() { return ::cuda_emulator::machine.block; }
};
inline grid_group this_grid() { return {}; }

// What lanes of one warp tell each other; `Group` has their mask.
template <class Group>
class lanes_that_talk {
 public:
  template <class T>
  T shfl(T value, unsigned source, CUDA_EMULATOR_LINE) const {
    return from(emulated::lane_of(mine(), source % count()), value, "group.shfl", line_);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, CUDA_EMULATOR_LINE) const {
    return from(emulated::lane_of(mine(), place() + delta), value, "group.shfl_down", line_);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CUDA_EMULATOR_LINE) const {
    const unsigned source = place() >= delta ? emulated::lane_of(mine(), place() - delta) : ::cuda_emulator::warp_size;
    return from(source, value, "group.shfl_up", line_);
  }
  template <class T>
  T shfl_xor(T value, unsigned with, CUDA_EMULATOR_LINE) const {
    return from(emulated::lane_of(mine(), place() ^ with), value, "group.shfl_xor", line_);
  }
  int any(int predicate, CUDA_EMULATOR_LINE) const { return __any_sync(mine(), predicate, line_); }
  int all(int predicate, CUDA_EMULATOR_LINE) const { return __all_sync(mine(), predicate, line_); }
  unsigned ballot(int predicate, CUDA_EMULATOR_LINE) const {
    return emulated::packed(__ballot_sync(mine(), predicate, line_), mine());
  }
  template <class T>
  unsigned match_any(T value, CUDA_EMULATOR_LINE) const {
    return emulated::packed(__match_any_sync(mine(), value, line_), mine());
  }
  template <class T>
  unsigned match_all(T value, int& all_same, CUDA_EMULATOR_LINE) const {
    return emulated::packed(__match_all_sync(mine(), value, &all_same, line_), mine());
  }

 private:
  unsigned mine() const { return static_cast<const Group*>(this)->lanes(); }
  unsigned count() const { return __builtin_popcount(mine()); }
  unsigned place() const { return emulated::before_me(mine()); }
  // Of a lane that is not there everybody keeps its own value.
  template <class T>
  T from(unsigned source, T value, const char* operation, int line) const {
    return ::cuda_emulator::shuffle(mine(), value, source, source < ::cuda_emulator::warp_size, operation, line);
  }
};

// `Size` neighbouring lanes of a warp, a power of two.
template <unsigned Size, class Parent = void>
class thread_block_tile : public thread_group, public lanes_that_talk<thread_block_tile<Size, Parent>> {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "on the CPU lane a tile has 1, 2, 4, 8, 16 or 32 threads; larger ones run on a GPU lane only");

 public:
  thread_block_tile() : thread_group(mask()) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}
  static unsigned thread_rank() { return ::cuda_emulator::lane() % Size; }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned meta_group_rank() { return ::cuda_emulator::current().linear / Size; }
  static unsigned meta_group_size() { return (::cuda_emulator::machine.count + Size - 1) / Size; }
  void sync(CUDA_EMULATOR_LINE) const { ::cuda_emulator::give(0, mask_, "tile.sync", line_); }
  static unsigned mask() {
    const unsigned ones = Size == 32 ? 0xffffffffu : (1u << (Size % 32)) - 1;
    return ones << (::cuda_emulator::lane() / Size * Size);
  }
};

// Lanes of a warp that have come to one place, or have something in common.
class coalesced_group : public thread_group, public lanes_that_talk<coalesced_group> {
 public:
  explicit coalesced_group(unsigned mask) : thread_group(mask) {}
  unsigned meta_group_rank() const { return 0; }
  unsigned meta_group_size() const { return 1; }
  void sync(CUDA_EMULATOR_LINE) const { ::cuda_emulator::give(0, mask_, "group.sync", line_); }
};
inline coalesced_group coalesced_threads(CUDA_EMULATOR_LINE) {
  return coalesced_group(::cuda_emulator::gathered("coalesced_threads", line_));
}

// Which lanes a group has in the caller's warp.
inline unsigned lanes_here(const thread_group& group) {
  if (group.lanes() != 0) return group.lanes();
  unsigned present = 0;
  for (unsigned i = 0; i < ::cuda_emulator::warp_size; ++i) present |= static_cast<unsigned>(::cuda_emulator::exists(i)) << i;
  return present;
}

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}
// Runs of `size` ranks of the group.
inline coalesced_group tiled_partition(const thread_group& group, unsigned size) {
  const unsigned lanes = lanes_here(group), begin = emulated::before_me(lanes) / size * size;
  unsigned mask = 0;
  for (unsigned rank = begin; rank < begin + size; ++rank) {
    const unsigned lane = emulated::lane_of(lanes, rank);
    if (lane < ::cuda_emulator::warp_size) mask |= 1u << lane;
  }
  return coalesced_group(mask);
}
template <class Group, class T>
coalesced_group labeled_partition(const Group& group, T label, CUDA_EMULATOR_LINE) {
  return coalesced_group(__match_any_sync(group.lanes(), label, line_));
}
template <class Group>
coalesced_group binary_partition(const Group& group, bool predicate, CUDA_EMULATOR_LINE) {
  return labeled_partition(group, predicate, line_);
}

template <class Group>
void sync(const Group& group, CUDA_EMULATOR_LINE) {
  group.sync(line_);
}
template <class Group>
auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
auto group_size(const Group& group) {
  return group.size();
}

template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) function(static_cast<Arguments&&>(arguments)...);
}
template <class Group, class Function, class... Arguments>
auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments) {
  decltype(function(static_cast<Arguments&&>(arguments)...)) value{};
  if (group.thread_rank() == 0) value = function(static_cast<Arguments&&>(arguments)...);
  return group.shfl(value, 0);
}

#define CUDA_EMULATOR_COMBINE(name, expression)           \
  template <class T = void>                               \
  struct name {                                           \
    T operator()(T a, T b) const { return expression; }   \
  };                                                      \
  template <>                                             \
  struct name<void> {                                     \
    template <class T>                                    \
    T operator()(T a, T b) const { return expression; }   \
  };
CUDA_EMULATOR_COMBINE(plus, a + b)
CUDA_EMULATOR_COMBINE(less, b < a ? b : a)
CUDA_EMULATOR_COMBINE(greater, a < b ? b : a)
CUDA_EMULATOR_COMBINE(bit_and, a & b)
CUDA_EMULATOR_COMBINE(bit_or, a | b)
CUDA_EMULATOR_COMBINE(bit_xor, a ^ b)
#undef CUDA_EMULATOR_COMBINE

template <class Group, class T, class Combine>
T reduce(const Group& group, T value, Combine combine, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::reduce(group.lanes(), value, combine, "reduce", line_);
}
template <class Group, class T, class Combine = plus<T>>
T inclusive_scan(const Group& group, T value, Combine combine = {}, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::scan(group.lanes(), value, T{}, combine, true, "inclusive_scan", line_);
}
template <class Group, class T, class Combine = plus<T>>
T exclusive_scan(const Group& group, T value, Combine combine = {}, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::scan(group.lanes(), value, T{}, combine, false, "exclusive_scan", line_);
}

}  // namespace cooperative_groups
