"""Bias, GELU and dropout, first milestone: one kernel draws the mask, another uses it.

The mask goes to memory and comes back, and the generator makes four words for each element, of which half of one is
used: seven neighbours compute the same words again.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["least", "seed"])
def _mask_kernel(mask_ptr, size, least, seed, BLOCK_SIZE: tl.constexpr):
    element = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    place = element % 8
    first, second, third, fourth = tl.randint4x(seed, element // 8)
    word = tl.where(place < 4, tl.where(place < 2, first, second), tl.where(place < 6, third, fourth))
    number = (word >> (16 * (place % 2)).to(tl.uint32)) & 0xFFFF
    tl.store(mask_ptr + element, (number >= least).to(tl.uint8), mask=element < size)


@triton.jit
def _gelu_kernel(x_ptr, bias_ptr, out_ptr, mask_ptr, size, cols, scale, BLOCK_SIZE: tl.constexpr):
    element = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = element < size
    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + element % cols, mask=inside, other=0.0).to(tl.float32)
    keep = tl.load(mask_ptr + element, mask=inside, other=0) != 0
    gelu = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    tl.store(out_ptr + element, tl.where(keep, gelu * scale, 0.0).to(out_ptr.dtype.element_ty), mask=inside)


def bias_gelu_dropout(
    x: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    mask: torch.Tensor,
    rows: int,
    cols: int,
    p: float,
    seed: int,
) -> None:
    size = rows * cols
    grid = (triton.cdiv(size, 1024),)
    _mask_kernel[grid](mask, size, math.ceil(p * 65536), seed, BLOCK_SIZE=1024)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    _gelu_kernel[grid](x, bias, out, mask, size, cols, scale, BLOCK_SIZE=1024)
