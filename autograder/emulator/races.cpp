// Who touched which word last, and what has made threads wait for each other since: races.h says what is a race.
#include "cuda_emulator/races.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_emulator/block.h"
#include "cuda_emulator/memory.h"

namespace cuda_emulator::races {

namespace {

constexpr std::size_t word_bytes = 4;
constexpr std::size_t most_shadowed_bytes = std::size_t{16} << 20;  // Of all memory: a shadow takes 24 times as much.

// One access to a word; of no thread where `epoch` is 0.
struct Access {
  std::uint32_t epoch;  // How many barriers of blocks had been passed, and blocks begun, when it was made.
  std::uint32_t time;   // How many times anybody had waited for anybody, or used an atomic.
  std::uint32_t code;   // In the library.
  std::uint16_t thread;
  std::uint8_t bytes;   // A bit for each byte of the word.
  bool atomic;
};

// The last access, and the last one by another thread before that.
struct Last {
  Access one, other;

  void add(const Access& now) {
    if (one.thread != now.thread || one.epoch != now.epoch) other = one;
    const bool together = one.thread == now.thread && one.time == now.time && one.epoch == now.epoch && one.atomic == now.atomic;
    const std::uint8_t before = together ? one.bytes : std::uint8_t{0};
    one = now;
    one.bytes |= before;
  }
};

struct Word {
  Last writes, reads, atomics;  // The first two without an atomic.
};

// A block of this launch.
struct Block {
  uint3 at;
  std::uint32_t first_epoch;
  std::uint32_t atomic_epoch = 0;          // Of its last atomic.
  std::vector<std::uint32_t> atomic_time;  // Of each thread's last one; empty before its first.
};

bool on = false;
std::uint32_t epoch = 0, now_is = 0, launch_epoch = 0;
bool atomic = false;                               // So is what the current thread does.
std::vector<Block> blocks;                         // Of this launch, in the order they ran.
std::uint32_t earlier_atomic_time = 0;             // Of this block's last atomic before its last barrier.
std::uint32_t block_atomic_time = 0;               // Of this block's last atomic.
std::uint32_t warp_time[max_block_threads];        // When each thread last waited for its warp.
std::uint32_t warp_atomic_time[max_block_threads / warp_size];
std::size_t shadowed_bytes = 0;

// An access that races with another one, if what comes next says so.
struct Pending {
  std::uintptr_t address = 0, code = 0;
  std::size_t bytes = 0;  // 0: there is none.
  unsigned char before[16];
  bool overwrites = false;
  std::string text;
  Access past;
};
Pending written;                   // If it changes what is there.
Pending overwritten;               // What one thread wrote and another one changed: told if nothing else goes wrong.
Pending read[max_block_threads];   // By each thread: a guess, if the thread's next atomic at this place puts it right.

std::uint32_t atomic_time(const Block& block, unsigned thread) {
  return block.atomic_time.empty() ? 0 : block.atomic_time[thread];
}

// Whether this thread of the running block, or its warp after waiting for it, has used an atomic since.
bool has_told(unsigned thread, std::uint32_t since) {
  if (atomic_time(blocks.back(), thread) > since) return true;
  return warp_time[thread] > since && warp_atomic_time[thread / warp_size] > since;
}

const Block& block_of(const Access& access) {
  const auto behind = std::upper_bound(blocks.begin(), blocks.end(), access.epoch,
                                       [](std::uint32_t value, const Block& block) { return value < block.first_epoch; });
  return *std::prev(behind);
}

bool is_of_this_block(const Access& access) { return access.epoch >= blocks.back().first_epoch; }

bool is_ordered(const Access& past, bool shared) {
  const unsigned self = current().linear;
  if (past.epoch < launch_epoch) return true;
  if (is_of_this_block(past)) {
    if (past.epoch != epoch || past.thread == self) return true;
    const bool one_warp = past.thread / warp_size == self / warp_size;
    if (one_warp && warp_time[past.thread] > past.time && warp_time[self] > past.time) return true;
    return has_told(past.thread, past.time) && has_told(self, past.time);
  }
  if (shared) return true;
  const Block& other = block_of(past);
  const bool told = other.atomic_epoch > past.epoch || atomic_time(other, past.thread) > past.time;
  return told && (has_told(self, past.time) || earlier_atomic_time > past.time);
}

std::string name_of(const Access& access) {
  const dim3 dim = machine.block_dim;
  const unsigned i = access.thread;
  char text[120];
  std::snprintf(text, sizeof text, "thread (%u,%u,%u)", i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y);
  return is_of_this_block(access) ? text : text + (" of " + block_name(block_of(access).at));
}

const char* remedy(const Access& past, bool overwrites) {
  if (overwrites) return "Which value stays is luck: look at how the two come to one place, or use an atomic.";
  if (!is_of_this_block(past)) {
    return "Blocks run at the same time, in any order: use an atomic, or a kernel of its own for what comes after.";
  }
  if (past.thread / warp_size == current().linear / warp_size) {
    return "Nothing makes one wait for the other: a __syncwarp() or a __syncthreads() is missing between the two, or an atomic.";
  }
  return "Nothing makes one wait for the other: a __syncthreads() is missing between the two, or an atomic.";
}

// `{line}` is where the other access is; whoever tells it looks it up.
std::string text_of(const Access& past, std::uintptr_t address, bool wrote, bool writes) {
  return "a data race: " + this_thread() + (writes ? " writes " : " reads ") + place_of(address) + (atomic ? " by an atomic" : "") +
         ", which " + name_of(past) + (wrote ? " writes" : " reads") + (past.atomic ? " by an atomic" : "") + " at line {line}. " +
         remedy(past, writes && wrote && !past.atomic);
}

void tell(const std::string& text, const Access& past, std::uintptr_t code) {
  fail("DataRace", 0, "%s", text.c_str());
  if (machine.trouble.code != 0) return;
  machine.trouble.code = code;
  machine.trouble.other_code = past.code + image_begin();
}

bool is_racing(const Access& past, const Access& now, bool shared) {
  return past.epoch != 0 && (past.bytes & now.bytes) != 0 && !is_ordered(past, shared);
}

// The access that races with one that is made now, if there is one.
const Access* racing(const Last& last, const Access& now, bool shared) {
  for (const Access* past : {&last.one, &last.other}) {
    if (is_racing(*past, now, shared)) return past;
  }
  return nullptr;
}

// A read of shared memory by a thread that went on with what it had read. This thread's own are put right now.
const Access* racing_with_a_guess(Last& reads, const Access& now) {
  for (Access* past : {&reads.one, &reads.other}) {
    if (past->thread == now.thread && past->epoch == now.epoch) past->bytes = 0;
    if (past->epoch != now.epoch || machine.threads[past->thread].state == State::ready) continue;
    if (is_racing(*past, now, true)) return past;
  }
  return nullptr;
}

}  // namespace

struct Shadow {
  std::uintptr_t begin;
  std::size_t bytes;
  Word* words;                // Zero until they are touched, which costs no memory.
  std::vector<bool> shared;   // Which words are of shared memory; empty where none is.

  Shadow(std::uintptr_t begin_, std::size_t bytes_)
      : begin(begin_ / word_bytes * word_bytes), bytes(bytes_), words(nullptr) {
    if (bytes > most_shadowed_bytes - std::min(shadowed_bytes, most_shadowed_bytes)) return;
    words = static_cast<Word*>(std::calloc(bytes / word_bytes + 2, sizeof(Word)));
    if (words != nullptr) shadowed_bytes += bytes;
  }
  ~Shadow() {
    if (words != nullptr) shadowed_bytes -= bytes;
    std::free(words);
  }
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
};

std::shared_ptr<Shadow> shadow_of(std::uintptr_t begin, std::size_t bytes) { return std::make_shared<Shadow>(begin, bytes); }

void watch(bool value) { on = value; }
bool watching() { return on; }

void launch_begins() {
  blocks.clear();
  launch_epoch = epoch + 1;
  written.bytes = overwritten.bytes = 0;
}

void block_begins() {
  ++epoch, ++now_is;
  atomic = false;
  earlier_atomic_time = block_atomic_time = 0;
  for (unsigned i = 0; i < machine.count; ++i) read[i].bytes = 0;
  std::fill(std::begin(warp_time), std::end(warp_time), 0u);
  std::fill(std::begin(warp_atomic_time), std::end(warp_atomic_time), 0u);
  if (watching()) blocks.push_back({machine.block, epoch, 0, {}});
}

void block_waited() {
  ++epoch, ++now_is;
  earlier_atomic_time = block_atomic_time;
}

void warp_waited(unsigned thread) { warp_time[thread] = ++now_is; }

void atomic_begins() {
  if (!watching() || machine.current == nullptr) return;
  atomic = true;
}

bool is_atomic() { return atomic; }

void atomic_ends() {
  if (!watching() || machine.current == nullptr) return;
  atomic = false;
  Block& block = blocks.back();
  const unsigned self = current().linear;
  if (block.atomic_time.empty()) block.atomic_time.resize(machine.count);
  block.atomic_time[self] = warp_atomic_time[self / warp_size] = block_atomic_time = ++now_is;
  block.atomic_epoch = epoch;
}

void is_shared(Shadow& shadow, std::uintptr_t begin, std::size_t bytes) {
  if (shadow.shared.empty()) shadow.shared.resize(shadow.bytes / word_bytes + 2);
  const std::size_t first = (begin - shadow.begin) / word_bytes, last = (begin + bytes - 1 - shadow.begin) / word_bytes;
  std::fill(shadow.shared.begin() + static_cast<std::ptrdiff_t>(first),
            shadow.shared.begin() + static_cast<std::ptrdiff_t>(last + 1), true);
}

void touch(Shadow& shadow, std::uintptr_t address, std::size_t bytes, bool writes, std::uintptr_t code) {
  if (shadow.words == nullptr || blocks.empty()) return;
  Access now{epoch, now_is, static_cast<std::uint32_t>(code - image_begin()), static_cast<std::uint16_t>(current().linear), 0, atomic};
  const std::uintptr_t end = address + bytes;
  for (std::uintptr_t at = address; at < end;) {
    const std::size_t number = (at - shadow.begin) / word_bytes, skipped = (at - shadow.begin) % word_bytes;
    const std::size_t taken = std::min(word_bytes - skipped, static_cast<std::size_t>(end - at));
    now.bytes = static_cast<std::uint8_t>(((1u << taken) - 1) << skipped);
    Word& word = shadow.words[number];
    const bool shared = !shadow.shared.empty() && shadow.shared[number];
    Pending& guess = read[now.thread];
    if (atomic && guess.address == at) guess.bytes = 0;
    const Access* past = racing(word.writes, now, shared);
    bool wrote = past != nullptr, guesses = false;
    if (past == nullptr && !atomic && (writes || shared)) {
      past = racing(word.atomics, now, shared);
      wrote = past != nullptr, guesses = wrote && !writes;
    }
    if (past == nullptr && !atomic && writes) past = racing(word.reads, now, shared);
    if (past == nullptr && atomic && writes && shared) past = racing_with_a_guess(word.reads, now);
    if (past != nullptr && (guesses || (writes && bytes <= sizeof written.before))) {
      Pending& pending = guesses ? guess : written;
      pending.address = guesses ? at : address, pending.bytes = bytes, pending.code = code, pending.past = *past;
      pending.overwrites = writes && wrote && !past->atomic;
      if (writes) std::memcpy(pending.before, reinterpret_cast<const void*>(address), bytes);
      pending.text = text_of(*past, address, wrote, writes);
    } else if (past != nullptr) {
      tell(text_of(*past, address, wrote, writes), *past, code);
      stop_thread();
    }
    (atomic ? word.atomics : writes ? word.writes : word.reads).add(now);
    at += taken;
  }
}

void settle() {
  if (written.bytes == 0) return;
  const bool changed = std::memcmp(written.before, reinterpret_cast<const void*>(written.address), written.bytes) != 0;
  if (changed && written.overwrites && overwritten.bytes == 0) {
    overwritten = written;
  } else if (changed && !written.overwrites && !machine.failed) {
    tell(written.text, written.past, written.code);
  }
  written.bytes = 0;
}

void launch_ends() {
  if (overwritten.bytes != 0 && !machine.failed) tell(overwritten.text, overwritten.past, overwritten.code);
  overwritten.bytes = 0;
}

void stopped(const Thread& thread) {
  settle();
  Pending& guess = read[thread.linear];
  if (guess.bytes == 0 || thread.state == State::ready) return;
  guess.bytes = 0;
  if (!machine.failed) tell(guess.text, guess.past, guess.code);
}

}  // namespace cuda_emulator::races
