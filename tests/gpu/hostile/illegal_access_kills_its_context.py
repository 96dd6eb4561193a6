"""Reads memory that is mapped nowhere, in a kernel: the context is of no use after it.

Class F6. Contexts are apart; the judge's and the reference's live on."""

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


@triton.jit
def _nowhere_kernel(out_ptr, address):
    pointer = address.to(tl.pointer_type(tl.float32))
    tl.store(out_ptr, tl.load(pointer))


def vector_add(x, y, out, n):
    _nowhere_kernel[(1,)](out, 0x7E0000000000)
    _honest(x, y, out, n)
