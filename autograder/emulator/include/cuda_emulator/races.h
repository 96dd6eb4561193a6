// Data races: two accesses to one word, one of them at least a write and one at least not atomic, and nothing between them
// that makes one wait for the other.
//
// What orders two threads of a block: a barrier of the block; one of their warp (shuffles and votes count); atomics by both,
// after the first access. What orders two blocks: atomics by both, after the first access and any barrier behind it. What is
// volatile counts as an atomic, as do loads and stores past a multiprocessor's own cache. A write that changes nothing races
// with nobody, nor does a read of what others change by atomics, but in shared memory, where no atomic at this place by the
// thread that read puts it right.
#pragma once

#include <cstdint>
#include <memory>

namespace cuda_emulator {
struct Thread;
}

namespace cuda_emulator::races {

// What is known of the accesses to a piece of memory.
struct Shadow;
std::shared_ptr<Shadow> shadow_of(std::uintptr_t begin, std::size_t bytes);

// Whether races are looked for from now on.
void watch(bool on);
bool watching();

void launch_begins();
void launch_ends();
void block_begins();
void block_waited();
void warp_waited(unsigned thread);

// This thread's accesses from here on are atomic, or are so no more.
void atomic_begins();
void atomic_ends();
bool is_atomic();

// These bytes are shared memory: each block has its own.
void is_shared(Shadow& shadow, std::uintptr_t begin, std::size_t bytes);

// The current thread is about to touch these bytes. A race is told by `fail` and ends the launch; where two threads only
// write, it is told at the launch's end, as an index that is wrong may show itself better by then.
void touch(Shadow& shadow, std::uintptr_t address, std::size_t bytes, bool writes, std::uintptr_t code);

// The write that came last has happened: whether it changed anything is known now.
void settle();

// A thread has given its turn away, waits or is done.
void stopped(const Thread& thread);

}  // namespace cuda_emulator::races
