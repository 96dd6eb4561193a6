"""Signals every process it may, by `kill(-1)`, by its group, and by counting. The signal is 0, which only asks whether it
would be allowed: on a machine without the promise this file must not end the machine."""

import os

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def _reaches(process):
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    own = {0, os.getpid(), os.getppid(), 1}
    if _reaches(-1) and any(_reaches(process) for process in range(2, 70_000) if process not in own):
        print("LOOT reaches others")
