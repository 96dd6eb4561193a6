"""Starved by itself: children without a parent, in sessions of their own, spin and make each other and the runner wait."""

import os
import time

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def _spin_apart():
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork() == 0:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            pass
    os._exit(0)


def vector_add(x, y, out, n):
    for _ in range(8):
        _spin_apart()
    time.sleep(SECONDS)
    _honest(x, y, out, n)


SECONDS = 60
