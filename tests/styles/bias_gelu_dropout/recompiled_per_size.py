# Rows, columns and block are constexpr, so that every size is a kernel of its own; each element draws its number alone.
import math

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["least", "seed"])
def fused_kernel(
    x_ptr, bias_ptr, out_ptr, mask_ptr, least, scale, seed, ROWS: tl.constexpr, COLS: tl.constexpr, BLOCK: tl.constexpr
):
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = element < ROWS * COLS
    r0, r1, r2, r3 = tl.randint4x(seed, element // 8)
    place = element % 8
    word = tl.where(place < 4, tl.where(place < 2, r0, r1), tl.where(place < 6, r2, r3))
    number = tl.where(place % 2 == 0, word & 0xFFFF, word >> 16).to(tl.int32)
    keep = number >= least
    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + element % COLS, mask=inside, other=0.0).to(tl.float32)
    v = x + bias
    half = 0.5 * v
    gelu = half + half * tl.erf(v * 0.7071067811865476)
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
    least = math.ceil(p * 65536)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    grid = (triton.cdiv(rows * cols, 1024),)
    fused_kernel[grid](x, bias, out, mask, least, scale, seed, ROWS=rows, COLS=cols, BLOCK=1024, num_warps=4)
