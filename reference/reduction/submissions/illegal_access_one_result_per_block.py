"""Illegal: stores a partial result of every block where there is room for one."""

import torch
import triton
import triton.language as tl


@triton.jit
def _partial_kernel(x_ptr, totals_ptr, largests_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(totals_ptr + tl.program_id(axis=0), tl.sum(x, axis=0))
    tl.store(largests_ptr + tl.program_id(axis=0), tl.max(tl.where(mask, x, -float("inf")), axis=0))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    _partial_kernel[(triton.cdiv(n, 256),)](x, total, largest, n, BLOCK_SIZE=256)
