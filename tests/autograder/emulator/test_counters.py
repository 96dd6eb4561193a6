"""Sectors, conflicts and launches of kernels whose figures follow from what they are made of."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import torch

from tests.autograder.emulated import FORWARD, SHUFFLED

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

LOADS, STORES = (f"l1tex__t_requests_pipe_lsu_mem_global_op_{one}" for one in ("ld", "st"))
LOADED, STORED = (f"l1tex__t_sectors_pipe_lsu_mem_global_op_{one}" for one in ("ld", "st"))
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"

BODIES = {
    # 8 warps move 32 floats each: 4 sectors a request.
    "b[i] = a[i];": {LOADS: 8, LOADED: 32, STORES: 8, STORED: 32},
    "b[i] = a[2 * i];": {LOADS: 8, LOADED: 64, "load_sectors_excess": 32, STORES: 8, STORED: 32},
    "b[i] = a[8 * i];": {LOADS: 8, LOADED: 256, "load_sectors_excess": 224, STORES: 8, STORED: 32},
    # One address for all lanes is one sector.
    "b[i] = a[0];": {LOADS: 8, LOADED: 8, STORES: 8, STORED: 32},
    # One lane further: a fifth sector.
    "b[i] = a[i + 1];": {LOADS: 8, LOADED: 40, "load_sectors_excess": 8, STORES: 8, STORED: 32},
    # 16 bytes a lane are one request of 16 sectors.
    "reinterpret_cast<float4*>(b)[i] = reinterpret_cast<const float4*>(a)[i];": {
        LOADS: 8, LOADED: 128, STORES: 8, STORED: 128,
    },
    # Odd lanes take no part.
    "if (i % 2 == 0) b[i] = a[i];": {LOADS: 8, LOADED: 32, "load_sectors_excess": 16,
                                     STORES: 8, STORED: 32, "store_sectors_excess": 16},
    # Lanes leave a loop at different turns: the nth turn of one goes with the nth of the others.
    "for (int k = 0; k <= threadIdx.x % 2; ++k) b[i] = a[i];": {
        LOADS: 8 + 8, LOADED: 64, "load_sectors_excess": 16, STORES: 8 + 8, STORED: 64, "store_sectors_excess": 16,
    },
    "atomicAdd(b, a[i]);": {LOADS: 8, LOADED: 32, "atomic_requests": 8, "atomic_sectors": 8},
}  # fmt: skip


def test_global_memory_is_counted_in_sectors_of_each_warps_requests(kernel):
    cases = "\n".join(f"    case {number}: {body} break;" for number, body in enumerate(BODIES))
    copy = kernel(f"""
        __global__ void k(const float* a, float* b, int which) {{
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          switch (which) {{\n{cases}\n}}
        }}
        extern "C" void go(const float* a, float* b, int which) {{ k<<<2, 128>>>(a, b, which); }}
    """)
    a, b = (torch.zeros(4096, dtype=torch.float32) for _ in range(2))
    a, b = (one[-one.data_ptr() % 128 // 4 :] for one in (a, b))
    for number, (body, expected) in enumerate(BODIES.items()):
        for order in (FORWARD, SHUFFLED):
            assert copy.counted(a, b, number, order=order) == {"launches": 1, **expected}, body


@pytest.mark.parametrize(("type_", "padding", "conflicts"), [
    ("float", 0, 31), ("float", 1, 0), ("double", 0, 2 * 15), ("double", 1, 0),
])  # fmt: skip
def test_a_tile_read_by_columns_conflicts_unless_it_is_padded(kernel, type_, padding, conflicts):
    turn = kernel(f"""
        __global__ void k(const {type_}* a, {type_}* b) {{
          __shared__ alignas(128) {type_} tile[32][32 + {padding}];
          tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
          __syncthreads();
          b[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
        }}
        extern "C" void go(const {type_}* a, {type_}* b) {{
          for (int i = 0; i < 2; ++i) k<<<1, dim3(32, 32)>>>(a, b);
        }}
    """)
    dtype = torch.float32 if type_ == "float" else torch.float64
    a, b = torch.randn(1024, dtype=dtype), torch.zeros(1024, dtype=dtype)
    found = turn.counted(a, b)
    assert torch.equal(b, a.view(32, 32).T.reshape(-1))
    assert (found["launches"], found["shared_load_requests"], found["shared_store_requests"]) == (2, 64, 64)
    assert found.get(CONFLICTS, 0) == 64 * conflicts


def test_what_the_host_copies_is_counted_too(kernel):
    copy = kernel("""
        extern "C" void go(const float* a, float* b) { cudaMemcpy(b, a, 400, cudaMemcpyDeviceToDevice); }
    """)
    assert copy.counted(torch.zeros(100), torch.zeros(100)) == {"copied_bytes": 800}


def test_a_kernel_that_reaches_for_the_counters_is_stopped(kernel):
    steal = kernel("""
        __device__ int mine;
        __global__ void k(long offset) { *reinterpret_cast<int*>(reinterpret_cast<char*>(&mine) + offset) = 0; }
        extern "C" void go(int offset) { k<<<1, 1>>>(offset); }
    """)
    listed = subprocess.run(["nm", "-C", str(steal.path)], capture_output=True, text=True, check=True).stdout
    at = {
        name: int(line.split()[0], 16)
        for line in listed.splitlines()
        for name in ("::state", " mine")
        if line.endswith(name)
    }
    offset = at["::state"] - at[" mine"] + 16
    assert "reaches for what the emulator counts" in steal(offset)
