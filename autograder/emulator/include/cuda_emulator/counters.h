// What one call does to memory, counted as Nsight Compute counts it: requests of whole warps, the sectors of 32 bytes that
// they touch, and how often shared memory has to be asked once more.
//
// Threads run one after another here, so a request is put together: what the lanes of a warp do at one instruction, each for
// the nth time since the block's last barrier, is one request. So it is on a GPU where all lanes that take part in a loop
// take part in all of its turns; where they leave some out, their requests may be put together in another way there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_emulator::counters {

// Count from now on, from nothing; or no more.
void count(bool on);
bool counting();

// Whether what is counted is kept there.
bool owns(std::uintptr_t address);

// One more launch has begun.
void launch_begins();

// The host has as many bytes of device memory read or written, by a copy or a fill.
void copied(std::size_t bytes);

// Everybody has arrived: threads begin anew to count how often they come to an instruction.
void together();

// These bytes are shared memory, from now on.
void is_shared(std::uintptr_t begin, std::size_t bytes);

// The current thread is about to touch these bytes, which are no thread's own.
void touch(std::uintptr_t address, std::size_t bytes, bool writes, std::uintptr_t code);

// What the current thread does from here on is one atomic at this address, for the line that calls; or is so no more.
void atomic_begins(const void* address, std::size_t bytes);
void atomic_ends();

}  // namespace cuda_emulator::counters
