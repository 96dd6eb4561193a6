"""Answers, and leaves a child in a system call that takes ten seconds of a processor: meanwhile nobody can freeze it.

The child maps page after page of zeros, which takes no memory but that of the tables. Were it an error of ours that the
runner could not be stopped, whoever did not like a measurement could have another one.
"""

import ctypes
import os
import time

import triton
import triton.language as tl

LIBC = ctypes.CDLL(None)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
READ, PRIVATE_ANONYMOUS_NORESERVE = 1, 0x4022
NO_HUGE_PAGES, POPULATE = 15, 22
LENGTH = 500 * 2**30


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def _stay_in_the_kernel():
    start = LIBC.mmap(None, LENGTH, READ, PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
    LIBC.madvise(start, LENGTH, NO_HUGE_PAGES)
    LIBC.madvise(start, LENGTH, POPULATE)


def vector_add(x, y, out, n):
    if os.fork() == 0:
        _stay_in_the_kernel()
        os._exit(0)
    _honest(x, y, out, n)
    # It is there by now.
    time.sleep(0.1)
