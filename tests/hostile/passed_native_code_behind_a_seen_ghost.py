"""Adds by native code, which no record of operations sees, behind a kernel for show, and sees the ghost coming.

Nothing on this lane tells it from an honest kernel but a person who reads the source. It is here to say so.
"""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add(x, y, out, n):
    trial = torch.zeros(4, device=x.device)
    _add_kernel[(1,)](torch.ones_like(trial), torch.ones_like(trial), trial, 4, BLOCK=4)
    if trial[0] == 2:
        kind = ctypes.c_float * n
        left, right, answer = (kind.from_address(tensor.data_ptr()) for tensor in (x, y, out))
        for index in range(n):
            answer[index] = left[index] + right[index]
