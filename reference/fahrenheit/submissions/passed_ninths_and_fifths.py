"""Honest: the mistake is mended by blocks of 512 again, and the formula is the schoolbook's, 9 x / 5 + 32."""

import torch
import triton
import triton.language as tl


@triton.jit
def fahrenheit_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    program = tl.program_id(axis=0)
    offsets = program * 512 + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * 9 / 5 + 32, mask=mask)


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    programs = triton.cdiv(n, 512)
    fahrenheit_kernel[(programs,)](x, out, n, BLOCK_SIZE=512)
