"""Celsius to Fahrenheit, the staff kernel: out[i] = 1.8 x[i] + 32.

One read and one write of 4 bytes for two operations. It is the starter without its mistake, because nothing is timed:
a block of 256 elements over 4 warps gives a thread two.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _fahrenheit_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    # 64-bit offsets: on a GPU a vector may have more than 2**31 elements.
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 1.8 * x + 32.0, mask=mask)


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    grid = (triton.cdiv(n, 256),)
    _fahrenheit_kernel[grid](x, out, n, BLOCK_SIZE=256)
