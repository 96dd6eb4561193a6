"""Honest: a tree made of launches: every one folds blocks of 2048, until a single block is left."""

import torch
import triton
import triton.language as tl


@triton.jit
def _fold_kernel(totals_ptr, largests_ptr, out_totals_ptr, out_largests_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    total = tl.load(totals_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    largest = tl.load(largests_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(out_totals_ptr + tl.program_id(axis=0), tl.sum(total, axis=0))
    out = tl.max(largest, axis=0).to(out_largests_ptr.dtype.element_ty)
    tl.store(out_largests_ptr + tl.program_id(axis=0), out)


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    totals, largests = x, x
    while n > 2048:
        programs = triton.cdiv(n, 2048)
        folded = torch.empty(2, programs, dtype=torch.float32, device=x.device)
        _fold_kernel[(programs,)](totals, largests, folded[0], folded[1], n, BLOCK_SIZE=2048)
        totals, largests, n = folded[0], folded[1], programs
    _fold_kernel[(1,)](totals, largests, total, largest, n, BLOCK_SIZE=2048)
