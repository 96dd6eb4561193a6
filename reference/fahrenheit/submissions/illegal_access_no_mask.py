"""Illegal: no mask, so the last block writes beyond the end of `out`."""

import torch
import triton
import triton.language as tl


@triton.jit
def fahrenheit_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offsets, 1.8 * tl.load(x_ptr + offsets) + 32.0)


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    fahrenheit_kernel[(triton.cdiv(n, 256),)](x, out, BLOCK_SIZE=256)
