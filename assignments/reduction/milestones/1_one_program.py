"""Reduction, first milestone: one program walks over the whole vector.

Right, with a running sum in each of 8192 lanes. It starts a new sum after 128 rounds, because a long chain
loses what is small beside a large value. One multiprocessor works, and all the others have nothing to do.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _reduce_kernel(x_ptr, total_ptr, largest_ptr, n, CHAIN: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    largest = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    for begin in range(0, n, CHAIN * BLOCK_SIZE):
        part = tl.zeros((BLOCK_SIZE,), tl.float32)
        for start in range(begin, min(begin + CHAIN * BLOCK_SIZE, n), BLOCK_SIZE):
            offsets = tl.cast(start, tl.int64) + tl.arange(0, BLOCK_SIZE)
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
            part += x
            largest = tl.maximum(largest, tl.where(mask, x, -float("inf")))
        total += part
    tl.store(total_ptr, tl.sum(total, axis=0))
    tl.store(largest_ptr, tl.max(largest, axis=0).to(largest_ptr.dtype.element_ty))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    _reduce_kernel[(1,)](x, total, largest, n, CHAIN=128, BLOCK_SIZE=8192, num_warps=16)
