"""Honest: scales into scratch memory with one kernel, adds with a second; rounds twice in 32 bits."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scale_kernel(a, x_ptr, scratch_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(scratch_ptr + offsets, a * tl.load(x_ptr + offsets, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def _add_kernel(scratch_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(axis=0) * BLOCK_SIZE
    for start in range(tl.program_id(axis=0) * BLOCK_SIZE, n, step):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n
        total = tl.load(scratch_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, total.to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    scratch = torch.empty(n, dtype=torch.float32, device=x.device)
    _scale_kernel[(triton.cdiv(n, 8192),)](a, x, scratch, n, BLOCK_SIZE=8192)
    _add_kernel[(7,)](scratch, y, out, n, BLOCK_SIZE=4096)
