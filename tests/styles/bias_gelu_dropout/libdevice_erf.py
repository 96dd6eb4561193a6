# erf of libdevice, and a mask that comes from a first launch over the packs of eight.
import math

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit(do_not_specialize=["least", "seed"])
def mask_kernel(mask_ptr, size, least, seed, PACKS: tl.constexpr):
    pack = tl.program_id(0) * PACKS + tl.arange(0, PACKS)
    r0, r1, r2, r3 = tl.randint4x(seed, pack)
    first = pack.to(tl.int64) * 8
    for i in tl.static_range(8):
        if i < 2:
            word = r0
        elif i < 4:
            word = r1
        elif i < 6:
            word = r2
        else:
            word = r3
        if i % 2 == 0:
            number = (word & 0xFFFF).to(tl.int32)
        else:
            number = (word >> 16).to(tl.int32)
        tl.store(mask_ptr + first + i, (number >= least).to(tl.uint8), mask=first + i < size)


@triton.jit
def gelu_kernel(x_ptr, bias_ptr, out_ptr, mask_ptr, size, cols, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at % cols, mask=inside, other=0.0).to(tl.float32)
    keep = tl.load(mask_ptr + at, mask=inside, other=0)
    v = x + bias
    gelu = 0.5 * v * (1.0 + libdevice.erf(v * 0.7071067811865476))
    out = tl.where(keep != 0, gelu * scale, 0.0)
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=inside)


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
    least = math.ceil(p * 65536)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    mask_kernel[(triton.cdiv(size, 8 * 256),)](mask, size, least, seed, PACKS=256)
    gelu_kernel[(triton.cdiv(size, 2048),)](x, bias, out, mask, size, cols, scale, BLOCK=2048, num_warps=8)
