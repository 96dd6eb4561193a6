"""Launches a kernel that never ends, and waits for it.

Class F4 and F6. The deadline of a call; with the process the driver ends what it had queued."""

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
def _endless_kernel(out_ptr):
    word = tl.load(out_ptr, volatile=True)
    while word == word + 0 * tl.load(out_ptr, volatile=True):
        word = tl.load(out_ptr, volatile=True)


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    _endless_kernel[(1,)](out.view(torch.int32))
