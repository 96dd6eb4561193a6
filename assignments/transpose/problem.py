"""Transpose: inputs in which every element says where it came from, and the one right answer.

    out[j, i] = x[i, j]

Nothing is computed, so equality is asked for, bit for bit.

Inputs are drawn in float32: none is wider, and a case of 2^28 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

APART = {"x": 0, "out": 1}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols); where its structure sits is drawn anew from `generator`."""
    return {"x": _DISTRIBUTIONS[distribution](generator, rows, cols).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the transpose, in float64, which holds every value of the smaller types."""
    return {"out": x.t().double()}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return zeros: nothing is rounded."""
    return {"out": torch.zeros_like(x.t(), dtype=torch.float64)}


def _decades(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Magnitudes from 1e-4 to 1e4 with both signs; no two elements are likely to be equal."""
    exponent = _uniform(generator, rows, cols, -4, 4)
    return (10**exponent).copysign_(_uniform(generator, rows, cols, -1, 1))


def _numbered(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Small integers that name row and column, from a random origin: a person can read off what went where."""
    device = generator.device
    row = (torch.arange(rows, device=device) + _integer(generator, 37)) % 37
    column = (torch.arange(cols, device=device) + _integer(generator, 53)) % 53
    return (53 * row[:, None] + column[None, :]).float()


def _stripes(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Constant rows, or constant columns: an answer that was not transposed looks nearly right in neither."""
    across = bool(_integer(generator, 2))
    values = torch.randint(-999, 1000, (rows if across else cols,), generator=generator, device=generator.device)
    stripes = values.float()[:, None] if across else values.float()[None, :]
    return stripes.expand(rows, cols).contiguous()


def _infinities(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Some infinities and zeros of both signs among ordinary values."""
    x, kind = _decades(generator, rows, cols), _uniform(generator, rows, cols, 0, 1)
    return torch.where(kind < 0.05, x * torch.inf, torch.where(kind > 0.95, x * 0.0, x))


def _uniform(generator: torch.Generator, rows: int, cols: int, low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(rows, cols, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _integer(generator: torch.Generator, below: int) -> int:
    return int(torch.randint(below, (1,), generator=generator, device=generator.device))


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int], torch.Tensor]] = {
    "decades": _decades,
    "numbered": _numbered,
    "stripes": _stripes,
    "infinities": _infinities,
}
