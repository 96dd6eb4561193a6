"""Row softmax: inputs that overflow a careless kernel, the answer in float64, and how far off float32 may be.

    out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]),    m[i] = max_k x[i, k]

Error of an honest float32 kernel, relative to the answer and with d = m - x ≥ 0: the rounded difference and the
change of base in front of the exponential cost up to 1.5·d·eps, the exponential and the division a few eps, the sum
of n positive numbers about √n·eps/2 in any order (Higham and Mary 2019), the rounding to the output's type eps/2 of
that type.

Inputs are drawn in their own type, and in place until rows change places, but for a mask: a case of 2^29 elements is
drawn anew for every call that is timed, so that each pass over it is waited for several hundred times.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps
APART = {"x": 0, "out": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols); every row has at least one finite value."""
    x = torch.empty(rows, cols, dtype=dtype, device=generator.device)
    _DISTRIBUTIONS[distribution](generator, x)
    # The kind, scale and offset of a row must say nothing about its place.
    return {"x": x[torch.randperm(rows, generator=generator, device=x.device)]}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the softmax of every row, in float64."""
    return {"out": torch.softmax(x.double(), dim=1)}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    wide = x.double()
    out = torch.softmax(wide, dim=1)
    # exp(-inf) is an exact zero, whatever the distance.
    distance = (wide.amax(dim=1, keepdim=True) - wide).nan_to_num(posinf=0.0)
    arithmetic = out * (1.5 * distance + 6 + 0.5 * math.sqrt(x.shape[1]))
    finfo = torch.finfo(x.dtype)
    # A GPU may flush a float32 below 2**-126 to zero; below the output type's normal range its spacing is absolute.
    flushed = torch.finfo(torch.float32).tiny / FLOAT32_EPS
    rounding = 0.5 * out.clamp(min=finfo.tiny)
    return {"out": rounding + (arithmetic + flushed) * (FLOAT32_EPS / finfo.eps)}


def _decades(generator: torch.Generator, x: torch.Tensor) -> None:
    """Row scales from 0.01 (nearly uniform) to 30 (nearly one-hot), row offsets of up to ±100."""
    rows = len(x)
    scale = 10 ** torch.linspace(-2, 1.5, rows, device=x.device)
    offset = 200 * torch.rand(rows, generator=generator, device=x.device) - 100
    x.normal_(generator=generator).mul_(scale[:, None]).add_(offset[:, None])


def _large(generator: torch.Generator, x: torch.Tensor) -> None:
    """Rows around +1e4 and -1e4: the exponential of the values themselves is infinite, or zero everywhere."""
    sign = 1.0 - 2.0 * (torch.arange(len(x), device=x.device) % 2)
    x.normal_(0, 4, generator=generator).add_(1e4 * sign[:, None])


def _lowest(generator: torch.Generator, x: torch.Tensor) -> None:
    """Values near the lowest of the type, with ties: only -inf is below them."""
    most = torch.finfo(x.dtype).max
    lowest = -0.9 * most if most < 2.0**64 else -most / 4
    few, spread = x.tensor_split(2)
    few.copy_(1 - 0.25 * torch.randint(0, 3, few.shape, generator=generator, device=x.device)).mul_(lowest)
    spread.uniform_(0.5, 1, generator=generator).mul_(lowest)


def _masked(generator: torch.Generator, x: torch.Tensor) -> None:
    """Each row keeps a random share of its columns; the others are -inf, as in attention under a mask."""
    rows, cols = x.shape
    x.normal_(0, 3, generator=generator)
    chance = torch.rand(rows, 1, generator=generator, device=x.device)
    causal = -(-rows // 3)
    # Everything from one column on is masked; the first never is.
    from_there = torch.arange(cols, device=x.device) > (chance[:causal] * cols).long()
    x[:causal].masked_fill_(from_there, -torch.inf)
    masked = torch.rand(rows - causal, cols, generator=generator, device=x.device) > chance[causal:]
    keep = torch.randint(cols, (rows - causal, 1), generator=generator, device=x.device)
    x[causal:].masked_fill_(masked.scatter_(1, keep, value=False), -torch.inf)


def _ties(generator: torch.Generator, x: torch.Tensor) -> None:
    """Rows of one value, and rows of a few values that repeat."""
    same, few = x.tensor_split(2)
    same.copy_(torch.randint(-50, 50, (len(same), 1), generator=generator, device=x.device))
    few.random_(-2, 3, generator=generator)


def _peaks(generator: torch.Generator, x: torch.Tensor) -> None:
    """One or two winners per row, often in its first or last columns, on a floor of small values."""
    rows, cols = x.shape
    x.normal_(-3, 0.5, generator=generator)
    row = torch.arange(rows, device=x.device)
    near_end = cols - 1 - torch.randint(min(cols, 5), (rows,), generator=generator, device=x.device)
    anywhere = torch.randint(cols, (rows,), generator=generator, device=x.device)
    x[row, anywhere] = 6.0
    x[row[::2], near_end[::2]] = 7.0


def _mixed(generator: torch.Generator, x: torch.Tensor) -> None:
    """Rows of all the kinds above in one matrix, as many of each."""
    kinds = (_decades, _large, _masked, _ties, _peaks)
    for make, rows in zip(kinds, x.tensor_split(len(kinds)), strict=True):
        if len(rows):
            make(generator, rows)


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, torch.Tensor], None]] = {
    "decades": _decades,
    "large": _large,
    "lowest": _lowest,
    "masked": _masked,
    "ties": _ties,
    "peaks": _peaks,
    "mixed": _mixed,
}
