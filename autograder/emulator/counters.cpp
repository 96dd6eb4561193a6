// Requests of warps, put together from what their threads do one after another: counters.h says how.
#include "cuda_emulator/counters.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda_emulator/block.h"

namespace cuda_emulator::counters {

namespace {

constexpr std::uintptr_t sector_bytes = 32, word_bytes = 4, banks = 32;
constexpr std::size_t widest_bytes = 16;  // What one instruction moves for one lane.

enum Kind : unsigned { load, store, atomic_, shared_load, shared_store, shared_atomic, kinds };

// As Nsight Compute calls them where it has the same quantity, else by words of ours.
enum Counter : unsigned {
  launches, load_requests, load_sectors, load_excess, store_requests, store_sectors, store_excess, atomic_requests, atomic_sectors,
  shared_loads, shared_stores, load_conflicts, store_conflicts, copied_bytes, all_counters
};
constexpr const char* names[all_counters] = {
    "launches",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "load_sectors_excess",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "store_sectors_excess",
    "atomic_requests",
    "atomic_sectors",
    "shared_load_requests",
    "shared_store_requests",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
    "copied_bytes",
};

// What one lane does in a request.
struct Part {
  std::uintptr_t address;
  std::uint8_t bytes, lane;
};
using Request = std::vector<Part>;

// An instruction, for one kind of memory.
struct Site {
  Kind kind;
  std::vector<std::uint32_t> times;             // How often each thread has come here.
  std::vector<std::vector<Request>> requests;   // Of each warp, one after another.
};

struct Shared {
  std::uintptr_t begin;
  std::size_t bytes;
};

// In one place, so that it is known whether somebody reaches for it.
struct State {
  bool on = false, in_atomic = false;  // The second: what comes is a part of an atomic.
  std::array<std::uint64_t, all_counters> counted{};
  std::unordered_map<std::uintptr_t, Site> sites;
  std::vector<Shared> shared;
} state;

bool is_in_shared(std::uintptr_t address) {
  if (address - reinterpret_cast<std::uintptr_t>(dynamic_shared) < shared_margin_bytes + max_shared_bytes) return true;
  return std::any_of(state.shared.begin(), state.shared.end(),
                     [=](const Shared& one) { return address - one.begin < one.bytes; });
}

std::vector<std::uintptr_t> units_of(const Request& request, std::uintptr_t unit) {
  std::vector<std::uintptr_t> found;
  for (const Part& part : request) {
    for (std::uintptr_t at = part.address / unit; at <= (part.address + part.bytes - 1) / unit; ++at) found.push_back(at);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// Sectors that as many bytes, each counted once, would fill.
std::uint64_t least_sectors(const Request& request) { return (units_of(request, 1).size() + sector_bytes - 1) / sector_bytes; }

// How often shared memory is asked beyond the first time. Lanes that move 8 bytes take part by halves of the warp, those that
// move 16 by quarters; each bank gives one word at a time, to everybody who wants it.
std::uint64_t conflicts_of(const Request& request) {
  const std::size_t widest =
      std::max_element(request.begin(), request.end(), [](const Part& a, const Part& b) { return a.bytes < b.bytes; })->bytes;
  const unsigned lanes = widest > 8 ? 8 : widest > word_bytes ? 16 : warp_size;
  std::uint64_t found = 0;
  for (unsigned first = 0; first < warp_size; first += lanes) {
    Request group;
    std::copy_if(request.begin(), request.end(), std::back_inserter(group),
                 [=](const Part& part) { return part.lane >= first && part.lane < first + lanes; });
    if (group.empty()) continue;
    std::array<std::uint64_t, banks> words{};
    for (const std::uintptr_t word : units_of(group, word_bytes)) ++words[word % banks];
    found += *std::max_element(words.begin(), words.end()) - 1;
  }
  return found;
}

void add(Kind kind, const Request& request) {
  const auto global = [&](Counter requests, Counter sectors) {
    const std::uint64_t touched = units_of(request, sector_bytes).size();
    ++state.counted[requests];
    state.counted[sectors] += touched;
    return touched - least_sectors(request);
  };
  switch (kind) {
    case load: state.counted[load_excess] += global(load_requests, load_sectors); break;
    case store: state.counted[store_excess] += global(store_requests, store_sectors); break;
    case atomic_: global(atomic_requests, atomic_sectors); break;
    case shared_load: ++state.counted[shared_loads], state.counted[load_conflicts] += conflicts_of(request); break;
    case shared_store: ++state.counted[shared_stores], state.counted[store_conflicts] += conflicts_of(request); break;
    case shared_atomic: case kinds: break;
  }
}

void touch_piece(Kind kind, std::uintptr_t address, std::size_t bytes, std::uintptr_t code) {
  Site& site = state.sites[code * kinds + kind];
  site.kind = kind;
  if (site.times.empty()) site.times.resize(max_block_threads), site.requests.resize(max_block_threads / warp_size);
  const unsigned self = current().linear;
  std::vector<Request>& warp = site.requests[self / warp_size];
  const std::uint32_t time = site.times[self]++;
  if (warp.size() <= time) warp.resize(time + 1);
  warp[time].push_back({address, static_cast<std::uint8_t>(bytes), static_cast<std::uint8_t>(self % warp_size)});
}

void touch_whole(Kind operation, std::uintptr_t address, std::size_t bytes, std::uintptr_t code) {
  const unsigned kind = (is_in_shared(address) ? shared_load : load) + operation;
  for (std::size_t done = 0; done < bytes; done += widest_bytes) {
    touch_piece(static_cast<Kind>(kind), address + done, std::min(widest_bytes, bytes - done), code);
  }
}

}  // namespace

void count(bool value) {
  state.on = value, state.in_atomic = false;
  if (!state.on) return;
  state.counted.fill(0);
  state.sites.clear(), state.shared.clear();
}

bool counting() { return state.on; }

bool owns(std::uintptr_t address) { return address - reinterpret_cast<std::uintptr_t>(&state) < sizeof state; }

void launch_begins() { state.counted[launches] += state.on; }

void copied(std::size_t bytes) { state.counted[copied_bytes] += state.on ? bytes : 0; }

void together() {
  for (auto& [_, site] : state.sites) {
    std::fill(site.times.begin(), site.times.end(), 0u);
    for (std::vector<Request>& warp : site.requests) {
      for (const Request& request : warp) add(site.kind, request);
      warp.clear();
    }
  }
}

void is_shared(std::uintptr_t begin, std::size_t bytes) {
  if (state.on && !is_in_shared(begin)) state.shared.push_back({begin, bytes});
}

void touch(std::uintptr_t address, std::size_t bytes, bool writes, std::uintptr_t code) {
  if (!state.in_atomic) touch_whole(writes ? store : load, address, bytes, code);
}

void atomic_begins(const void* address, std::size_t bytes) {
  if (!state.on || machine.current == nullptr) return;
  state.in_atomic = true;
  const auto code = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1;
  touch_whole(atomic_, reinterpret_cast<std::uintptr_t>(address), bytes, code);
}

void atomic_ends() { state.in_atomic = false; }

}  // namespace cuda_emulator::counters

extern "C" {
// Whether what calls do is counted from now on; where it is, from nothing.
void cuda_emulator_count(int on) { cuda_emulator::counters::count(on != 0); }

// One counter after another; false where there are no more.
bool cuda_emulator_counter(unsigned number, const char** name, std::uint64_t* value) {
  using namespace cuda_emulator::counters;
  if (number >= all_counters) return false;
  *name = names[number];
  *value = state.counted[number];
  return true;
}
}
