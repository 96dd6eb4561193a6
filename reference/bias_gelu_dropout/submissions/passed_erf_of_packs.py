"""Honest: packs of eight, the error function as torch has it, and blocks of 512 packs."""

import math

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["least", "seed"])
def _kernel(x_ptr, bias_ptr, out_ptr, mask_ptr, size, cols, least, scale, seed, PACKS: tl.constexpr):
    counter = tl.program_id(axis=0) * PACKS + tl.arange(0, PACKS)[:, None]
    place = tl.arange(0, 8)[None, :]
    element = counter * 8 + place
    inside = element < size
    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + element % cols, mask=inside, other=0.0).to(tl.float32)
    first, second, third, fourth = tl.randint4x(seed, counter)
    word = tl.where(place < 4, tl.where(place < 2, first, second), tl.where(place < 6, third, fourth))
    keep = tl.where(place % 2 == 0, word & 0xFFFF, word >> 16) >= least
    gelu = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    tl.store(out_ptr + element, tl.where(keep, gelu * scale, 0.0).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mask_ptr + element, keep.to(tl.uint8), mask=inside)


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
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    grid = (triton.cdiv(size, 512 * 8),)
    _kernel[grid](x, bias, out, mask, size, cols, math.ceil(p * 65536), scale, seed, PACKS=512)
