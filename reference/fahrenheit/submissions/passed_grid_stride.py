"""Honest: eight programs, each of which walks over the vector in steps of the whole grid."""

import torch
import triton
import triton.language as tl


@triton.jit
def fahrenheit_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(axis=0) * BLOCK_SIZE
    for start in range(tl.program_id(axis=0) * BLOCK_SIZE, n, step):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
        tl.store(out_ptr + offsets, tl.fma(x, 1.8, 32.0), mask=mask)


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    fahrenheit_kernel[(8,)](x, out, n, BLOCK_SIZE=1024)
