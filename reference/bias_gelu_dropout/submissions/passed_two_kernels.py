"""Honest: one kernel adds the bias and takes GELU into scratch memory, another one drops."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _gelu_kernel(x_ptr, bias_ptr, gelu_ptr, size, cols, BLOCK_SIZE: tl.constexpr):
    element = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = element < size
    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + element % cols, mask=inside, other=0.0).to(tl.float32)
    tl.store(gelu_ptr + element, 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476)), mask=inside)


@triton.jit(do_not_specialize=["least", "seed"])
def _dropout_kernel(gelu_ptr, out_ptr, mask_ptr, size, least, scale, seed, PACKS: tl.constexpr):
    counter = tl.program_id(axis=0) * PACKS + tl.arange(0, PACKS)[:, None]
    place = tl.arange(0, 8)[None, :]
    inside = counter * 8 + place < size
    first, second, third, fourth = tl.randint4x(seed, counter)
    word = tl.where(place < 4, tl.where(place < 2, first, second), tl.where(place < 6, third, fourth))
    keep = tl.where(place % 2 == 0, word & 0xFFFF, word >> 16) >= least
    gelu = tl.load(gelu_ptr + counter * 8 + place, mask=inside, other=0.0)
    tl.store(out_ptr + counter * 8 + place, tl.where(keep, gelu * scale, 0.0).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mask_ptr + counter * 8 + place, keep.to(tl.uint8), mask=inside)


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
    gelu = torch.empty(size, dtype=torch.float32, device=x.device)
    _gelu_kernel[(triton.cdiv(size, 4096),)](x, bias, gelu, size, cols, BLOCK_SIZE=4096)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    grid = (triton.cdiv(size, 512 * 8),)
    _dropout_kernel[grid](gelu, out, mask, size, math.ceil(p * 65536), scale, seed, PACKS=512)
