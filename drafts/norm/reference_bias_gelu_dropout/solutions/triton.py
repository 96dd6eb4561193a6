"""Bias, GELU and dropout in one kernel, the staff kernel.

    v = x[i, j] + bias[j],    out[i, j] = keep · v · Φ(v) / (1 - p),    mask[i, j] = keep

A program works on packs of eight neighbours, because one Philox counter gives four words of 32 bits, which are eight
numbers of 16 bits: the generator runs once for eight elements. Φ(v) = erfc(-v/√2)/2 is taken as

    erfc(z) ≈ (a1·t + a2·t² + a3·t³ + a4·t⁴ + a5·t⁵) · exp(-z²),    t = 1/(1 + 0.3275911·z),    z ≥ 0

whose error is at most 1.5e-7, one exponential and one division; for positive v it is 1 minus that of -v.

Sources: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011, for Philox; Abramowitz and
Stegun, "Handbook of Mathematical Functions", 7.1.26, for the error function.
"""

import torch
import triton
import triton.language as tl

PACK = tl.constexpr(8)  # Elements of one counter.


@triton.jit
def _gelu(v):
    """v · Φ(v): the logarithm to base 2 of the odds Φ/(1 - Φ) is v times a smooth function of v²."""
    u = tl.minimum(v * v, 38.0)
    odds = 5.067394948099491e-09 * u - 3.816365108377795e-07
    odds = odds * u + 1.1439893569331616e-05
    odds = odds * u - 0.00015958023141138256
    odds = odds * u - 9.404860611539334e-05
    odds = odds * u + 0.10483512282371521
    odds = odds * u + 2.3022093772888184
    return v / (1.0 + tl.exp2(-v * odds))


@triton.jit
def _numbers(seed, counter, place):
    """The 16-bit number of every element: half a word of the four that Philox makes of `counter`."""
    first, second, third, fourth = tl.randint4x(seed, counter)
    word = tl.where(place < 4, tl.where(place < 2, first, second), tl.where(place < 6, third, fourth))
    return tl.where(place % 2 == 0, word & 0xFFFF, word >> 16)


@triton.jit
def _kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    mask_ptr,
    size,
    cols,
    threshold,
    scale,
    seed,
    WHOLE_PACKS: tl.constexpr,
    PACKS: tl.constexpr,
):
    counter = tl.program_id(axis=0) * PACKS + tl.arange(0, PACKS)[:, None]
    place = tl.arange(0, PACK)[None, :]
    element = counter.to(tl.int64) * PACK + place
    inside = element < size
    if WHOLE_PACKS:
        # No pack reaches over the end of a row: one division for eight elements, and wide loads of the bias.
        column = counter % (cols // PACK) * PACK + place
    else:
        column = element % cols
    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    keep = _numbers(seed, counter, place).to(tl.float32) >= threshold
    out = tl.where(keep, _gelu(v) * scale, 0.0)
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
    size = rows * cols
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    # The interpreter pays per program, so there a program takes many more packs.
    packs = 256 if x.is_cuda else 4096
    _kernel[(triton.cdiv(size, packs * PACK.value),)](
        x, bias, out, mask, size, cols, p * 65536, scale, seed, WHOLE_PACKS=cols % 8 == 0, PACKS=packs, num_warps=8
    )
