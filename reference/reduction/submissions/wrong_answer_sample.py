"""Wrong: adds every other element, and doubles."""

import torch
import triton
import triton.language as tl


@triton.jit
def _partial_kernel(x_ptr, totals_ptr, largests_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(totals_ptr + tl.program_id(axis=0), 2 * tl.sum(tl.where(offsets % 2 == 0, x, 0.0), axis=0))
    tl.store(largests_ptr + tl.program_id(axis=0), tl.max(tl.where(mask, x, -float("inf")), axis=0))


@triton.jit
def _last_kernel(totals_ptr, largests_ptr, total_ptr, largest_ptr, partials, BLOCK_SIZE: tl.constexpr):
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    largest = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    for start in range(0, partials, BLOCK_SIZE):
        lane = start + tl.arange(0, BLOCK_SIZE)
        total += tl.load(totals_ptr + lane, mask=lane < partials, other=0.0)
        largest = tl.maximum(largest, tl.load(largests_ptr + lane, mask=lane < partials, other=-float("inf")))
    tl.store(total_ptr, tl.sum(total, axis=0))
    tl.store(largest_ptr, tl.max(largest, axis=0).to(largest_ptr.dtype.element_ty))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    programs = triton.cdiv(n, 8192)
    totals = torch.empty(programs, dtype=torch.float32, device=x.device)
    largests = torch.empty(programs, dtype=torch.float32, device=x.device)
    _partial_kernel[(programs,)](x, totals, largests, n, BLOCK_SIZE=8192)
    _last_kernel[(1,)](totals, largests, total, largest, programs, BLOCK_SIZE=1024)
