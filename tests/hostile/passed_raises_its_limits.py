"""Raises its own limits, and sets its parent's, its priority, its processors."""

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
parent = os.getppid()
for call in (
    lambda: resource.prlimit(parent, resource.RLIMIT_CORE, (0, 0)),
    lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)),
    lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
    lambda: os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0)),
):
    try:
        call()
        print("LOOT steers its parent")
    except OSError:
        pass


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
