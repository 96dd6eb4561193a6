// Atomics. Threads take turns only where they wait, so that a plain read and write is atomic. What spins on an atomic has to
// let others run: exchanges and compare-and-swaps give the turn away every time, the others now and then.
#pragma once

#include "cuda_emulator/block.h"
#include "cuda_emulator/counters.h"
#include "cuda_emulator/half.h"
#include "cuda_emulator/races.h"

namespace cuda_emulator {

constexpr unsigned turns_between_yields = 64;

CUDA_EMULATOR_UNCHECKED inline void let_others_run(bool always) {
  static unsigned calls = 0;
  if (machine.current != nullptr && (always || ++calls % turns_between_yields == 0)) wait_as(State::ready);
}

template <class T, class Change>
CUDA_EMULATOR_INLINE T atomically(T* address, Change change, bool always = false) {
  let_others_run(always || machine.order == Order::shuffled);
  races::atomic_begins();
  counters::atomic_begins(address, sizeof(T));
  const T old = *address;
  const T now = change(old);
  // What changes nothing is no progress: a lock that is taken is asked for again and again.
  if (std::memcmp(&old, &now, sizeof old) != 0) *address = now;
  counters::atomic_ends();
  races::atomic_ends();
  return old;
}

template <class T>
T sum(T a, T b) {
  return static_cast<T>(a + b);
}
inline float2 sum(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
inline float4 sum(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

template <class T>
struct Same {
  using type = T;
};
template <class T>
using Exactly = typename Same<T>::type;  // Deduced from the address alone, as CUDA's overloads are chosen.

}  // namespace cuda_emulator

// Of the block, the device and the system: here they are the same.
#define CUDA_EMULATOR_ATOMIC_IN(name, expression)                                                                \
  template <class T>                                                                                             \
  CUDA_EMULATOR_INLINE T name(T* address, ::cuda_emulator::Exactly<T> value) {                                   \
    return ::cuda_emulator::atomically(address, [&](T old) -> T { return static_cast<T>(expression); });         \
  }
#define CUDA_EMULATOR_ATOMIC(name, expression)       \
  CUDA_EMULATOR_ATOMIC_IN(name, expression)          \
  CUDA_EMULATOR_ATOMIC_IN(name##_block, expression)  \
  CUDA_EMULATOR_ATOMIC_IN(name##_system, expression)
CUDA_EMULATOR_ATOMIC(atomicAdd, ::cuda_emulator::sum(old, value))
CUDA_EMULATOR_ATOMIC(atomicSub, old - value)
CUDA_EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
CUDA_EMULATOR_ATOMIC(atomicMax, value > old ? value : old)
CUDA_EMULATOR_ATOMIC(atomicAnd, old & value)
CUDA_EMULATOR_ATOMIC(atomicOr, old | value)
CUDA_EMULATOR_ATOMIC(atomicXor, old ^ value)
CUDA_EMULATOR_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUDA_EMULATOR_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef CUDA_EMULATOR_ATOMIC
#undef CUDA_EMULATOR_ATOMIC_IN

#define CUDA_EMULATOR_EXCHANGE(suffix)                                                                                       \
  template <class T>                                                                                                         \
  CUDA_EMULATOR_INLINE T atomicExch##suffix(T* address, ::cuda_emulator::Exactly<T> value) {                                 \
    return ::cuda_emulator::atomically(address, [&](T) { return value; }, true);                                             \
  }                                                                                                                          \
  template <class T>                                                                                                         \
  CUDA_EMULATOR_INLINE T atomicCAS##suffix(T* address, ::cuda_emulator::Exactly<T> compare, ::cuda_emulator::Exactly<T> value) { \
    return ::cuda_emulator::atomically(address, [&](T old) { return old == compare ? value : old; }, true);                  \
  }
CUDA_EMULATOR_EXCHANGE()
CUDA_EMULATOR_EXCHANGE(_block)
CUDA_EMULATOR_EXCHANGE(_system)
#undef CUDA_EMULATOR_EXCHANGE
