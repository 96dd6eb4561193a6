"""Starts as many threads as it may, which compute and copy memory of the host as fast as they can.

Class F7, invariant 7. The turns are frozen apart."""

import threading

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


def _hog():
    left, right = bytearray(2**26), bytearray(2**26)
    while True:
        left[:] = right
        right[:] = left


for _ in range(16):
    threading.Thread(target=_hog, daemon=True).start()


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
