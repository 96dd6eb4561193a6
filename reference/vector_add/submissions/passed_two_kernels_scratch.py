"""Honest: copies x into scratch memory of its own with one kernel, adds y with a second; twice the traffic."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy_kernel(source_ptr, target_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(target_ptr + offsets, tl.load(source_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    # Counted down from the last block: the order of programs is nobody's business.
    block = tl.num_programs(axis=0) - 1 - tl.program_id(axis=0)
    offsets = block * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, (x + y).to(out_ptr.dtype.element_ty), mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    scratch = torch.empty(n, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n, 4096),)
    _copy_kernel[grid](x, scratch, n, BLOCK_SIZE=4096)
    _add_kernel[grid](scratch, y, out, n, BLOCK_SIZE=4096)
