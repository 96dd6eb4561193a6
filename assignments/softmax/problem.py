"""Row softmax: inputs that overflow a careless kernel, the answer in float64, and how far off float32 may be.

    out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]),    m[i] = max_k x[i, k]

Error of an honest float32 kernel, relative to the answer and with d = m - x ≥ 0: the rounded difference and the
change of base in front of the exponential cost up to 1.5·d·eps, the exponential and the division a few eps, the sum
of n positive numbers about √n·eps/2 in any order (Higham and Mary 2019), the rounding to the output's type eps/2 of
that type.

Inputs are drawn in float32: none is wider, and a case of 2^29 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols); every row has at least one finite value."""
    x = _DISTRIBUTIONS[distribution](generator, rows, cols)
    # The scale and offset of a row must say nothing about its place.
    return {"x": x.to(dtype)[_permutation(generator, rows)]}


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


def _decades(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Row scales from 0.01 (nearly uniform) to 30 (nearly one-hot), row offsets of up to ±100."""
    scale = 10 ** torch.linspace(-2, 1.5, rows, device=generator.device)
    offset = 200 * torch.rand(rows, generator=generator, device=generator.device) - 100
    return _normal(generator, rows, cols).mul_(scale[_permutation(generator, rows), None]).add_(offset[:, None])


def _large(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Rows around +1e4 and -1e4: the exponential of the values themselves is infinite, or zero everywhere."""
    sign = 1.0 - 2.0 * (torch.arange(rows, device=generator.device) % 2)
    return _normal(generator, rows, cols).mul_(4).add_(1e4 * sign[:, None])


def _masked(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Each row keeps a random share of its columns; the others are -inf, as in attention under a mask."""
    x = _normal(generator, rows, cols).mul_(3)
    chance = torch.rand(rows, 1, generator=generator, device=generator.device)
    masked = torch.rand(rows, cols, generator=generator, device=generator.device) > chance
    # A causal row: everything from one column on is masked.
    masked[::3] = torch.arange(cols, device=generator.device) > (chance[::3] * cols).long()
    keep = torch.randint(cols, (rows,), generator=generator, device=generator.device)
    keep[::3] = 0
    masked[torch.arange(rows, device=generator.device), keep] = False
    return x.masked_fill_(masked, -torch.inf)


def _ties(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Rows of one value, and rows of a few values that repeat."""
    levels = torch.randint(-2, 3, (rows, cols), generator=generator, device=generator.device).float()
    levels[::2] = torch.randint(-50, 50, (rows, 1), generator=generator, device=generator.device).float()[::2]
    return levels


def _peaks(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """One or two winners per row, often in its first or last columns, on a floor of small values."""
    x = _normal(generator, rows, cols).mul_(0.5).sub_(3)
    row = torch.arange(rows, device=generator.device)
    near_end = cols - 1 - torch.randint(min(cols, 5), (rows,), generator=generator, device=generator.device)
    anywhere = torch.randint(cols, (rows,), generator=generator, device=generator.device)
    x[row, anywhere] = 6.0
    x[row[::2], near_end[::2]] = 7.0
    return x


def _mixed(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Rows of all the kinds above in one matrix."""
    kinds = (_decades, _large, _masked, _ties, _peaks)
    x = torch.empty(rows, cols, device=generator.device)
    for number, make in enumerate(kinds[:rows]):
        count = len(range(number, rows, len(kinds)))
        x[number :: len(kinds)] = make(generator, count, cols)
    return x


def _normal(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    return torch.randn(rows, cols, generator=generator, device=generator.device)


def _permutation(generator: torch.Generator, count: int) -> torch.Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int], torch.Tensor]] = {
    "decades": _decades,
    "large": _large,
    "masked": _masked,
    "ties": _ties,
    "peaks": _peaks,
    "mixed": _mixed,
}
