"""Raises its own limits, and lowers its parent's."""

import os
import resource

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
    soft, hard = resource.getrlimit(kind)
    try:
        resource.setrlimit(kind, (hard, hard + 1 if hard != resource.RLIM_INFINITY else hard))
        if hard == resource.RLIM_INFINITY:
            print("LOOT no limit of kind", kind)
        else:
            print("LOOT raised kind", kind)
    except (OSError, ValueError):
        pass
try:
    resource.prlimit(os.getppid(), resource.RLIMIT_NICE, (0, 0))
    if os.getppid() > 0:
        print("LOOT set a limit of its parent")
except OSError:
    pass


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
