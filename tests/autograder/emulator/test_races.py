"""Data races are found in whatever order threads run, and nobody is accused who waits."""

from __future__ import annotations

import shutil

import pytest
import torch

from tests.autograder.emulated import FORWARD, REVERSE, SHUFFLED

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

RACES = {
    "a counter of all blocks without an atomic": (
        """\
__global__ void k(int* a, int n) {
  if (threadIdx.x == 0)
    a[0] += n;
}
extern "C" void go(int* a, int n) { k<<<2, 32>>>(a, n); }
""",
        "thread (0,0,0) of block (B,0,0) of k reads element 0 of a, which thread (0,0,0) of block (A,0,0) writes at",
        "use an atomic, or a kernel of its own",
        (3, 3),
    ),
    "counters of one block": (
        """\
__global__ void k(int* a, int n) {
  a[threadIdx.x % 7] = a[threadIdx.x % 7] + n;
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
""",
        "of k reads element",
        "__syncwarp()",
        (2, 2),
    ),
    "a barrier is missing between writing and reading": (
        """\
__global__ void k(int* a, int n) {
  __shared__ int all[64];
  all[threadIdx.x] = a[threadIdx.x];
  a[threadIdx.x] = all[63 - threadIdx.x] + n;
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
""",
        "shared memory",
        "a __syncthreads() is missing between the two",
        (4, 3),
    ),
    "a barrier is missing before shared memory is used again": (
        """\
__global__ void k(int* a, int n) {
  extern __shared__ int all[];
  for (int round = 0; round < 2; ++round) {
    all[threadIdx.x] = a[threadIdx.x] + round;
    __syncthreads();
    a[threadIdx.x] = all[(threadIdx.x + 32) % 64] + n;
  }
}
extern "C" void go(int* a, int n) { k<<<1, 64, 256>>>(a, n); }
""",
        "shared memory",
        "a __syncthreads() is missing",
        (4, 6),
    ),
    "lanes of a warp that do not wait for each other": (
        """\
__global__ void k(int* a, int n) {
  __shared__ int all[32];
  all[threadIdx.x] = a[threadIdx.x];
  a[threadIdx.x] = all[31 - threadIdx.x] + n;
}
extern "C" void go(int* a, int n) { k<<<1, 32>>>(a, n); }
""",
        "shared memory",
        "a __syncwarp() or a __syncthreads() is missing",
        (4, 3),
    ),
    "two blocks write to one place": (
        """\
__global__ void k(short* a, int n) {
  a[threadIdx.x + blockIdx.x] = blockIdx.x + n;
}
extern "C" void go(short* a, int n) { k<<<2, 32>>>(a, n); }
""",
        "writes element",
        "Which value stays is luck: look at how the two come to one place",
        (2, 2),
    ),
    "an atomic before the write tells nobody of it": (
        """\
__device__ int drawn;
__global__ void k(int* a, int n) {
  __shared__ int mine;
  if (threadIdx.x == 0) mine = atomicAdd(&drawn, 1);
  __syncthreads();
  if (threadIdx.x == 0) a[1] = a[1] + n;
}
extern "C" void go(int* a, int n) { k<<<2, 64>>>(a, n); }
""",
        "element 1 of a",
        "use an atomic",
        (6, 6),
    ),
    "a place that blocks add to is cleared by one of them": (
        """\
__global__ void k(int* a, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) a[0] = 0;
  __syncthreads();
  atomicAdd(&a[0], n);
}
extern "C" void go(int* a, int n) { k<<<2, 64>>>(a, n); }
""",
        "element 0 of a",
        "use an atomic",
        None,
    ),
    "a copy that is waited for by its own thread alone": (
        """\
#include <cuda_pipeline.h>
__global__ void k(int* a, int n) {
  __shared__ int all[64];
  __pipeline_memcpy_async(&all[threadIdx.x], &a[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  int other = all[(threadIdx.x + 32) % 64] + n;
  __syncthreads();
  a[threadIdx.x] = other;
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
""",
        "shared memory",
        "a __syncthreads() is missing",
        (7, 4),
    ),
}


@pytest.mark.parametrize(("source", "what", "missing", "lines"), RACES.values(), ids=RACES)
def test_a_race_is_found(kernel, source, what, missing, lines):
    mine = kernel(source)
    for order in (FORWARD, REVERSE, SHUFFLED):
        said = mine(torch.arange(1, 129, dtype=torch.int32), 5, order=order, races=True)
        assert mine.kind == "DataRace"
        earlier, later = ("1", "0") if order == REVERSE else ("0", "1")
        assert what.replace("B", later).replace("A", earlier) in said
        assert "at line {line}" in said
        assert missing in said
        assert lines is None or sorted((mine.line, mine.other_line)) == sorted(lines)


READ_BEFORE_ALL_HAVE_ADDED = """\
__global__ void k(int* a, int n) {
  __shared__ int all;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  atomicAdd(&all, a[threadIdx.x] + n);
  if (threadIdx.x == 63)
    a[100] = all;
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
"""


def test_a_counter_that_is_read_before_all_have_added_is_found_in_the_order_that_shows_it(kernel):
    mine = kernel(READ_BEFORE_ALL_HAVE_ADDED)
    a = torch.arange(128, dtype=torch.int32)
    assert mine(a, 5, order=FORWARD, races=True) == ""
    assert "writes shared memory or a variable of the file by an atomic, which thread (63,0,0) reads" in mine(
        a, 5, order=REVERSE, races=True
    )


@pytest.mark.quick
def test_what_two_threads_write_to_one_place_is_told_if_nothing_else_goes_wrong(kernel):
    mine = kernel("""
        __global__ void k(int* a, int n) { a[threadIdx.x / 2 * n] = threadIdx.x; }
        extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
    """)
    assert "which has 32 elements (0 to 31)" in mine(torch.zeros(32, dtype=torch.int32), 2, races=True)
    assert "Which value stays is luck" in mine(torch.zeros(32, dtype=torch.int32), 1, races=True)


@pytest.mark.quick
def test_nothing_is_looked_for_unless_it_is_asked_for(kernel):
    source, *_ = RACES["a counter of all blocks without an atomic"]
    a = torch.zeros(1, dtype=torch.int32)
    assert kernel(source)(a, 5) == ""
    assert a.item() == 10


HONEST = {
    "each thread its own byte": """\
__global__ void k(int* a, int n) {
  unsigned char* bytes = reinterpret_cast<unsigned char*>(a);
  bytes[blockIdx.x * 64 + threadIdx.x] += n;
}
extern "C" void go(int* a, int n) { k<<<2, 64>>>(a, n); }
""",
    "all threads write the same": """\
__global__ void k(int* a, int n) {
  __shared__ int flag;
  flag = n;
  if (a[threadIdx.x] == n) a[100] = n;
  a[threadIdx.x] = flag;
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
""",
    "a tree in shared memory": """\
__global__ void k(int* a, int n) {
  __shared__ int all[64];
  all[threadIdx.x] = a[threadIdx.x] + n;
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (threadIdx.x < step) all[threadIdx.x] += all[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) a[64] = all[0];
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
""",
    "a warp's own barrier": """\
__global__ void k(int* a, int n) {
  __shared__ int all[64];
  all[threadIdx.x] = a[threadIdx.x] + n;
  __syncwarp();
  a[threadIdx.x] = all[threadIdx.x ^ 5];
}
extern "C" void go(int* a, int n) { k<<<1, 64>>>(a, n); }
""",
    "blocks use the same shared memory": """\
__global__ void k(int* a, int n) {
  __shared__ int all[32];
  extern __shared__ int more[];
  all[threadIdx.x] = more[threadIdx.x] = a[threadIdx.x + 32 * blockIdx.x];
  a[threadIdx.x + 32 * blockIdx.x] = all[threadIdx.x] + more[threadIdx.x] + n;
}
extern "C" void go(int* a, int n) { k<<<3, 32, 128>>>(a, n); }
""",
    "one launch after another": """\
__global__ void k(int* a, int n) { a[threadIdx.x] = a[63 - threadIdx.x > 31 ? threadIdx.x : 63 - threadIdx.x] + n; }
__global__ void two(int* a, int n) { if (threadIdx.x == 0) a[blockIdx.x] = a[blockIdx.x] + n; }
extern "C" void go(int* a, int n) { two<<<64, 32>>>(a, n); two<<<64, 32>>>(a, n); }
""",
    "the last block adds up what all have left": """\
__device__ int ended;
__global__ void k(int* a, int n) {
  __shared__ bool last;
  a[64 + blockIdx.x] = a[threadIdx.x] + n;
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(&ended, 1) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int all = 0;
    for (int i = 0; i < gridDim.x; ++i) all += a[64 + i];
    a[100] = all;
    ended = 0;
  }
}
extern "C" void go(int* a, int n) { k<<<4, 1>>>(a, n); }
""",
    "the last block, all of whose threads read": """\
__device__ unsigned ended;
__global__ void k(int* a, int n) {
  __shared__ bool last;
  a[32 + blockIdx.x * 8 + threadIdx.x] = n;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(&ended, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last) a[threadIdx.x] = a[32 + threadIdx.x] + a[40 + threadIdx.x];
}
extern "C" void go(int* a, int n) { k<<<2, 8>>>(a, n); }
""",
    "a lock": """\
__device__ int lock;
__global__ void k(int* a, int n) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
    a[0] += n;
    __threadfence();
    atomicExch(&lock, 0);
  }
}
extern "C" void go(int* a, int n) { k<<<4, 32>>>(a, n); }
""",
    "counters by atomics": """\
__global__ void k(int* a, int n) {
  __shared__ int mine[8];
  if (threadIdx.x < 8) mine[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&mine[a[64 + threadIdx.x] % 8], n);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&a[threadIdx.x], mine[threadIdx.x]);
}
extern "C" void go(int* a, int n) { k<<<3, 64>>>(a, n); }
""",
    "a maximum by a loop of compare and swap": """\
__device__ void largest(float* place, float value) {
  int* bits = (int*)place;
  int old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
}
__global__ void k(int* a, int n) { largest((float*)a, threadIdx.x + blockIdx.x * n); }
extern "C" void go(int* a, int n) { k<<<3, 64>>>(a, n); }
""",
    "an atomic where it is needed": """\
__global__ void k(int* a, int n) { if (n + threadIdx.x > a[100]) atomicMax(&a[100], n + threadIdx.x); }
extern "C" void go(int* a, int n) { k<<<3, 64>>>(a, n); }
""",
    "tickets that a warp hands on": """\
__device__ int next;
__global__ void k(int* a, int n) {
  int mine = 0;
  if (threadIdx.x == 0) mine = atomicAdd(&next, 1);
  mine = __shfl_sync(0xffffffffu, mine, 0) % 4;
  a[mine * 32 + threadIdx.x] += n;
}
extern "C" void go(int* a, int n) { k<<<4, 32>>>(a, n); }
""",
    "blocks tell each other past the caches": """\
__device__ int ready[5];
__global__ void k(int* a, int n) {
  if (threadIdx.x == 0) {
    a[1 + blockIdx.x] = a[0] + n;
    __threadfence();
    __stcg(&ready[blockIdx.x], 1);
    for (int i = 0; i < blockIdx.x; ++i) if (__ldcg(&ready[i])) a[32 + blockIdx.x] = a[1 + i];
  }
}
__global__ void clear() { ready[threadIdx.x] = 0; }
extern "C" void go(int* a, int n) { clear<<<1, 5>>>(); k<<<4, 32>>>(a, n); }
""",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_who_waits_is_not_accused(kernel, source):
    mine = kernel(source)
    for order in (FORWARD, REVERSE, SHUFFLED, FORWARD):
        assert mine(torch.arange(1, 129, dtype=torch.int32), 5, order=order, races=True) == ""


VOLATILE = """\
__device__ volatile int ready[4];
__global__ void k(int* a, int n) {
  __shared__ KIND int all[64];
  all[threadIdx.x] = a[threadIdx.x % 32];
  int other = all[threadIdx.x ^ 1];
  if (threadIdx.x == 0) {
    a[32 + blockIdx.x] = other + n;
    __threadfence();
    ready[blockIdx.x] = 1;
    if (blockIdx.x > 0 && ready[blockIdx.x - 1]) a[64 + blockIdx.x] = a[32 + blockIdx.x - 1];
  }
}
extern "C" void go(int* a, int n) { k<<<4, 64>>>(a, n); }
"""


@pytest.mark.parametrize(("kind", "missing"), [("volatile", ""), ("", "__syncwarp")])
def test_threads_tell_each_other_by_what_is_volatile(kernel, kind, missing):
    said = kernel(VOLATILE.replace("KIND", kind))(torch.arange(128, dtype=torch.int32), 5, races=True)
    assert missing in said
    assert bool(said) is bool(missing)
