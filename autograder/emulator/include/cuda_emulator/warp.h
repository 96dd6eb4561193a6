// What the threads of a warp, and of a block, tell each other: shuffles, votes, reductions.
#pragma once

#include <type_traits>

#include "cuda_emulator/block.h"

namespace cuda_emulator {

// Hand a value in and wait until every lane of the mask has: then each sees what the others gave.
template <class T>
void give(const T& value, unsigned mask, const char* operation, int line) {
  static_assert(sizeof(T) <= sizeof(Slot) && std::is_trivially_copyable_v<T>);
  Thread& self = current();
  if ((mask >> lane() & 1) == 0) {
    fail("WarpError", line, "%s: %s at line %d is called by lane %u with the mask 0x%08x, which does not name it.",
         here_in_grid().c_str(), operation, line, lane(), mask);
    stop_thread();
  }
  std::memcpy(self.given.bytes, &value, sizeof(T));
  self.operation = operation;
  self.line = line;
  self.mask = mask;
  wait_as(State::at_warp);
}

// What a lane of this warp gave.
template <class T>
T shown(unsigned lane_number) {
  T value;
  std::memcpy(&value, machine.threads[current().linear / warp_size * warp_size + lane_number].shown.bytes, sizeof(T));
  return value;
}

inline bool exists(unsigned lane_number) {
  return current().linear / warp_size * warp_size + lane_number < machine.count;
}

template <class T>
T shuffle(unsigned mask, T value, unsigned source, bool inside, const char* operation, int line) {
  give(value, mask, operation, line);
  // A lane outside of the segment leaves the caller's own value; one outside of the mask gave nothing that can be relied on.
  if (!inside) return value;
  if ((mask >> source & 1) == 0) {
    fail("WarpError", line, "%s: %s at line %d reads lane %u, which the mask 0x%08x does not name.", here_in_grid().c_str(),
         operation, line, source, mask);
    stop_thread();
  }
  return shown<T>(source);
}

template <class T, class Combine>
T reduce(unsigned mask, T value, Combine combine, const char* operation, int line) {
  give(value, mask, operation, line);
  bool first = true;
  T total{};
  for (unsigned i = 0; i < warp_size; ++i) {
    if ((mask >> i & 1) == 0) continue;
    total = first ? shown<T>(i) : combine(total, shown<T>(i));
    first = false;
  }
  return total;
}

// What the lanes before the caller gave, combined in order, and perhaps its own; `none` where there are none.
template <class T, class Combine>
T scan(unsigned mask, T value, T none, Combine combine, bool with_own, const char* operation, int line) {
  give(value, mask, operation, line);
  bool first = true;
  for (unsigned i = 0; i < lane() + with_own; ++i) {
    if ((mask >> i & 1) == 0) continue;
    none = first ? shown<T>(i) : combine(none, shown<T>(i));
    first = false;
  }
  return none;
}

template <class T>
unsigned match(unsigned mask, T value, const char* operation, int line) {
  give(value, mask, operation, line);
  unsigned same = 0;
  for (unsigned i = 0; i < warp_size; ++i) {
    if ((mask >> i & 1) && shown<T>(i) == value) same |= 1u << i;
  }
  return same;
}

// The lanes of the mask whose predicate holds, one bit each.
inline unsigned ballot(unsigned mask, bool predicate, const char* operation, int line) {
  give(predicate, mask, operation, line);
  unsigned bits = 0;
  for (unsigned i = 0; i < warp_size; ++i) {
    if ((mask >> i & 1) && shown<bool>(i)) bits |= 1u << i;
  }
  return bits;
}

// Which lanes of this warp have come here with the caller.
inline unsigned gathered(const char* operation, int line) {
  Thread& self = current();
  self.operation = operation;
  self.line = line;
  wait_as(State::gathering);
  return self.mask;
}

// How many threads of the block say yes. They are counted when the barrier is passed: when the last warp goes on, the first
// ones may have said other things since. Until it has gone on no barrier is passed, so the number stays.
inline int count_in_block(bool predicate, const char* operation, int line) {
  current().says = predicate;
  barrier(line, operation);
  return machine.agreed;
}

inline unsigned segment_end(int width) { return (lane() | (static_cast<unsigned>(width) - 1)); }
inline unsigned segment_begin(int width) { return lane() & ~(static_cast<unsigned>(width) - 1); }

}  // namespace cuda_emulator

#define __syncthreads() ::cuda_emulator::barrier(__LINE__, "__syncthreads")
#define __syncthreads_count(predicate) ::cuda_emulator::count_in_block((predicate), "__syncthreads_count", __LINE__)
#define __syncthreads_or(predicate) (__syncthreads_count(predicate) > 0)
// Nobody says no: threads that have ended say nothing.
#define __syncthreads_and(predicate) (::cuda_emulator::count_in_block(!(predicate), "__syncthreads_and", __LINE__) == 0)

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_EMULATOR_LINE) {
  // Of a warp that is not full, the lanes that are not there do not count.
  unsigned present = 0;
  for (unsigned i = 0; i < ::cuda_emulator::warp_size; ++i) present |= static_cast<unsigned>(::cuda_emulator::exists(i)) << i;
  ::cuda_emulator::give(0, mask & present, "__syncwarp", line_);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_EMULATOR_LINE) {
  const unsigned from = ::cuda_emulator::segment_begin(width) | (static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1));
  return ::cuda_emulator::shuffle(mask, value, from, true, "__shfl_sync", line_);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_EMULATOR_LINE) {
  const unsigned me = ::cuda_emulator::lane();
  const bool inside = me >= delta && me - delta >= ::cuda_emulator::segment_begin(width);
  return ::cuda_emulator::shuffle(mask, value, me - delta, inside, "__shfl_up_sync", line_);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_EMULATOR_LINE) {
  const unsigned from = ::cuda_emulator::lane() + delta;
  return ::cuda_emulator::shuffle(mask, value, from, from <= ::cuda_emulator::segment_end(width), "__shfl_down_sync", line_);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDA_EMULATOR_LINE) {
  const unsigned from = ::cuda_emulator::lane() ^ static_cast<unsigned>(lane_mask);
  return ::cuda_emulator::shuffle(mask, value, from, from <= ::cuda_emulator::segment_end(width), "__shfl_xor_sync", line_);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::ballot(mask, predicate != 0, "__ballot_sync", line_);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::ballot(mask, predicate != 0, "__any_sync", line_) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::ballot(mask, predicate != 0, "__all_sync", line_) == mask;
}
inline int __uni_sync(unsigned mask, int predicate, CUDA_EMULATOR_LINE) {
  const unsigned yes = ::cuda_emulator::ballot(mask, predicate != 0, "__uni_sync", line_);
  return yes == 0 || yes == mask;
}
inline unsigned __activemask(CUDA_EMULATOR_LINE) { return ::cuda_emulator::gathered("__activemask", line_); }
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_same, CUDA_EMULATOR_LINE) {
  const unsigned same = ::cuda_emulator::match(mask, value, "__match_all_sync", line_);
  return *all_same = same == mask, same == mask ? mask : 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_EMULATOR_LINE) {
  return ::cuda_emulator::match(mask, value, "__match_any_sync", line_);
}

#define CUDA_EMULATOR_REDUCE(name, type, expression)                                                            \
  inline type name(unsigned mask, type value, CUDA_EMULATOR_LINE) {                                             \
    return ::cuda_emulator::reduce(mask, value, [](type a, type b) -> type { return expression; }, #name, line_); \
  }
CUDA_EMULATOR_REDUCE(__reduce_add_sync, unsigned, a + b)
CUDA_EMULATOR_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
CUDA_EMULATOR_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
CUDA_EMULATOR_REDUCE(__reduce_add_sync, int, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
CUDA_EMULATOR_REDUCE(__reduce_min_sync, int, a < b ? a : b)
CUDA_EMULATOR_REDUCE(__reduce_max_sync, int, a > b ? a : b)
CUDA_EMULATOR_REDUCE(__reduce_and_sync, unsigned, a & b)
CUDA_EMULATOR_REDUCE(__reduce_or_sync, unsigned, a | b)
CUDA_EMULATOR_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef CUDA_EMULATOR_REDUCE

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
