"""Celsius to Fahrenheit: out[i] = 1.8 * x[i] + 32.

One line has a mistake. The formula is right.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fahrenheit_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    program = tl.program_id(axis=0)
    offsets = program * 512 + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 1.8 * x + 32.0, mask=mask)


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    # Blocks had 512 elements. Somebody made them smaller,
    # tried ten temperatures, and saw that all were right.
    BLOCK_SIZE = 256
    programs = triton.cdiv(n, BLOCK_SIZE)
    fahrenheit_kernel[(programs,)](x, out, n, BLOCK_SIZE=BLOCK_SIZE)
