"""Bias, GELU and dropout in one kernel, the staff kernel.

    v = x[i, j] + bias[j],    out[i, j] = keep · v · Φ(v) / (1 - p),    mask[i, j] = keep

A program works on packs of eight neighbours, because one Philox counter gives four words of 32 bits, which are eight
numbers of 16 bits: the generator runs once for eight elements. v·Φ(v) = max(v, 0) - t·Φ(-t) with t = |v|, and
Φ(-t) = 2**q(t) with a polynomial q: one exponential and no division. Where rows are whole packs, a program takes the
same columns of several rows, so that biases are loaded once and no column is found by division. Numbers that change
from call to call are not specialised: a seed that is a multiple of 16 would be compiled for anew.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011, for Philox, which is
Triton's own generator. The polynomials are our own (fit.py in the folder above).
"""

import math

import torch
import triton
import triton.language as tl

PACK = tl.constexpr(8)  # Elements of one counter.


@triton.jit
def _twice_gelu(v, NARROW: tl.constexpr):
    """2·v·Φ(v): v + t is twice the larger of v and 0; q is log2 of 2·Φ(-t), to fewer digits where NARROW."""
    t = tl.abs(v)
    if NARROW:
        q = -0.00037460957537405193 * t + 0.006332108285278082
        q = q * t - 0.04986259713768959
        q = q * t - 0.46202099323272705
        q = q * t - 1.150106430053711
        q = q * t - 0.000056112541642505676
    else:
        q = -2.772211348354318e-06 * t + 3.862272569676861e-05
        q = q * t - 0.0001825572398956865
        q = q * t - 0.00014584590098820627
        q = q * t + 0.007075438275933266
        q = q * t - 0.0525050014257431
        q = q * t - 0.45920491218566895
        q = q * t - 1.1511057615280151
        q = q * t
    return (v + t) - t * tl.exp2(q)


@triton.jit
def _numbers(seed, counter, place):
    """The 16-bit number of every element in the upper half of a word; below it may be anything."""
    first, second, third, fourth = tl.randint4x(seed, counter)
    word = tl.where(place < 4, tl.where(place < 2, first, second), tl.where(place < 6, third, fourth))
    return tl.where(place % 2 == 0, word << 16, word)


@triton.jit
def _work(x, bias, counter, place, least, half_scale, seed):
    """Outputs in float32 and what is kept, of any packs."""
    keep = (_numbers(seed, counter, place) >= (least.to(tl.uint32) << 16)) & (least < 65536)
    gelu = _twice_gelu(x.to(tl.float32) + bias.to(tl.float32), x.dtype.primitive_bitwidth == 16)
    return tl.where(keep, gelu * half_scale, 0.0), keep


@triton.jit(do_not_specialize=["least", "seed"])
def _whole_packs_kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    mask_ptr,
    rows,
    packs_of_row,
    least,
    half_scale,
    seed,
    ROWS: tl.constexpr,
    PACKS: tl.constexpr,
):
    row = tl.program_id(axis=1) * ROWS + tl.arange(0, ROWS)[:, None, None]
    pack = tl.program_id(axis=0) * PACKS + tl.arange(0, PACKS)[None, :, None]
    place = tl.arange(0, PACK)[None, None, :]
    counter = row * packs_of_row + pack
    element = counter.to(tl.int64) * PACK + place
    inside = (row < rows) & (pack < packs_of_row)
    x = tl.load(x_ptr + element, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + pack * PACK + place, mask=pack < packs_of_row, other=0.0)
    out, keep = _work(x, bias, counter, place, least, half_scale, seed)
    tl.store(out_ptr + element, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mask_ptr + element, keep.to(tl.uint8), mask=inside)


@triton.jit(do_not_specialize=["least", "seed"])
def _any_packs_kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    mask_ptr,
    size,
    cols,
    least,
    half_scale,
    seed,
    PACKS: tl.constexpr,
):
    counter = tl.program_id(axis=0) * PACKS + tl.arange(0, PACKS)[:, None]
    place = tl.arange(0, PACK)[None, :]
    element = counter.to(tl.int64) * PACK + place
    inside = element < size
    x = tl.load(x_ptr + element, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + element % cols, mask=inside, other=0.0)
    out, keep = _work(x, bias, counter, place, least, half_scale, seed)
    tl.store(out_ptr + element, out.to(out_ptr.dtype.element_ty), mask=inside)
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
    # A whole number is not less than p·65536 if it is not less than the next whole number above.
    least = math.ceil(p * 65536)
    half_scale = 0.5 / (1.0 - p) if least < 65536 else 0.0
    if cols % PACK.value == 0:
        packs_of_row = cols // PACK.value
        # The interpreter pays per program, so there a program takes many more rows.
        block_rows, packs = (1, 512) if x.is_cuda else (32, 64)
        grid = (triton.cdiv(packs_of_row, packs), triton.cdiv(rows, block_rows))
        _whole_packs_kernel[grid](
            x, bias, out, mask, rows, packs_of_row, least, half_scale, seed, ROWS=block_rows, PACKS=packs, num_warps=4
        )
    else:
        size, packs = rows * cols, 256 if x.is_cuda else 4096
        grid = (triton.cdiv(size, packs * PACK.value),)
        _any_packs_kernel[grid](x, bias, out, mask, size, cols, least, half_scale, seed, PACKS=packs)
