"""Wrong: the planted mistake the other way round. Fewer programs are started than the blocks of 256 need."""

import torch
import triton
import triton.language as tl


@triton.jit
def fahrenheit_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 1.8 * x + 32.0, mask=mask)


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    fahrenheit_kernel[(triton.cdiv(n, 512),)](x, out, n, BLOCK_SIZE=256)
