"""Wrong: adds atomically to an output that nobody set to zero; the judge fills it with NaN."""

import torch
import triton
import triton.language as tl


@triton.jit
def _partial_kernel(x_ptr, totals_ptr, largests_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(totals_ptr, tl.sum(x, axis=0))
    tl.atomic_max(largests_ptr, tl.max(tl.where(mask, x, -float("inf")), axis=0))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    wide = torch.full((1,), -float("inf"), dtype=torch.float32, device=x.device)
    _partial_kernel[(triton.cdiv(n, 8192),)](x, total, wide, n, BLOCK_SIZE=8192)
    largest.copy_(wide)
