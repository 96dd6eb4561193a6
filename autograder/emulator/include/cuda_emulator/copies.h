// Asynchronous copies from global to shared memory: what a thread copies is there when it has waited for it, and poison
// before. cuda_pipeline.h and cooperative_groups/memcpy_async.h.
#pragma once

#include "cuda_emulator/groups.h"
#include "cuda_emulator/memory.h"

namespace cuda_emulator {

// Both ends are touched here, so that an error is told at the line that calls it.
CUDA_EMULATOR_INLINE void copy_unwaited(void* to, const void* from, size_t bytes, size_t zeros = 0) {
  will_read(from, bytes - zeros);
  will_write(to, bytes);
  copy_later(to, from, bytes, zeros);
  __builtin_memset(to, poison, bytes);
}

}  // namespace cuda_emulator

CUDA_EMULATOR_INLINE void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0,
                                                  CUDA_EMULATOR_LINE) {
  const size_t misplaced = (reinterpret_cast<std::uintptr_t>(shared) | reinterpret_cast<std::uintptr_t>(global)) & (bytes - 1);
  if ((bytes != 4 && bytes != 8 && bytes != 16) || misplaced != 0 || zeros > bytes) {
    ::cuda_emulator::fail("MisalignedAddress", line_,
                          "a misaligned address: __pipeline_memcpy_async copies 4, 8 or 16 bytes between addresses that are a "
                          "multiple of as many; in %s it was to copy %zu.",
                          ::cuda_emulator::this_thread().c_str(), bytes);
    ::cuda_emulator::stop_thread();
  }
  ::cuda_emulator::copy_unwaited(shared, global, bytes, zeros);
}
inline void __pipeline_commit() { ::cuda_emulator::commit_copies(); }
inline void __pipeline_wait_prior(size_t batches) { ::cuda_emulator::wait_for_copies(static_cast<unsigned>(batches)); }

namespace cooperative_groups {

// Every thread of the group copies a share, in units of 16 bytes.
template <class Group, class To, class From>
CUDA_EMULATOR_INLINE void memcpy_async(const Group& group, To* to, const From* from, size_t bytes) {
  constexpr size_t unit = 16;
  for (size_t at = group.thread_rank() * unit; at < bytes; at += group.size() * unit) {
    const size_t share = bytes - at < unit ? bytes - at : unit;
    ::cuda_emulator::copy_unwaited(reinterpret_cast<char*>(to) + at, reinterpret_cast<const char*>(from) + at, share);
  }
  ::cuda_emulator::commit_copies();
}
template <class Group, class To, class From>
CUDA_EMULATOR_INLINE void memcpy_async(const Group& group, To* to, size_t room, const From* from, size_t count) {
  memcpy_async(group, to, from, (room < count ? room : count) * sizeof(From));
}
template <class Group>
void wait(const Group& group, CUDA_EMULATOR_LINE) {
  ::cuda_emulator::wait_for_copies(0);
  group.sync(line_);
}
template <unsigned Left, class Group>
void wait_prior(const Group& group, CUDA_EMULATOR_LINE) {
  ::cuda_emulator::wait_for_copies(Left);
  group.sync(line_);
}

}  // namespace cooperative_groups
