"""Reduction, second milestone: every program folds a block of 1024 and adds its result with an atomic operation.

Every multiprocessor works. A quarter of a million programs meet at two addresses, where the L2 cache lets one after the
other in; and each folds a tree for only 1024 numbers. The sum depends on who comes first, in its last digits.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _begin_kernel(total_ptr, largest_ptr):
    tl.store(total_ptr, 0.0)
    tl.store(largest_ptr, -float("inf"))


@triton.jit
def _block_kernel(x_ptr, total_ptr, largest_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr, tl.sum(x, axis=0))
    tl.atomic_max(largest_ptr, tl.max(tl.where(mask, x, -float("inf")), axis=0))


@triton.jit
def _end_kernel(wide_ptr, largest_ptr):
    tl.store(largest_ptr, tl.load(wide_ptr).to(largest_ptr.dtype.element_ty))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    # There is no atomic maximum of 16-bit types: it is taken in float32.
    wide = torch.empty(1, dtype=torch.float32, device=x.device)
    block_size = 1024 if x.is_cuda else 8192
    _begin_kernel[(1,)](total, wide)
    _block_kernel[(triton.cdiv(n, block_size),)](x, total, wide, n, BLOCK_SIZE=block_size, num_warps=4)
    _end_kernel[(1,)](wide, largest)
