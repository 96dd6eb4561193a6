"""Quantised GEMM: int8 factors with a scale for each row of both, the answer in float64, how far off it may be.

    out[i, j] = (Σ_l a[i, l] · b[j, l]) · a_scale[i] · b_scale[j]

The sum is of integers, at most 2**14 · k, and has to be exact: an int32 holds it up to k = 131071. What is rounded is
its conversion to float32, the product with one scale and the product with the other, in any order: three times half an
eps of the answer. A sum that is off by one is off by more, unless it is above 2**22.

Inputs are drawn in float32 and rounded, as in `gemm_epilogue`: they are drawn anew for every call that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

APART = {"a": 0, "a_scale": 0, "out": 0}
ROUNDINGS = 3
LARGEST, SMALLEST = 127, -128
KEPT = 12
"""Pairs of positions of K in `cancelling` that do not cancel."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, m: int, n: int, k: int
) -> dict[str, torch.Tensor]:
    """Return `a` (m, k) and `b` (n, k), int8, `a_scale` (m,) and `b_scale` (n,), float32."""
    a, b = _DISTRIBUTIONS[distribution](generator, m, n, k)
    a_scale, b_scale = _scales(generator, m), _scales(generator, n) / (LARGEST * LARGEST * math.sqrt(k))
    if distribution == "readable":
        a_scale, b_scale = _powers(generator, m), _powers(generator, n)
    return {"a": a.to(dtype), "b": b.to(dtype), "a_scale": a_scale, "b_scale": b_scale}


def expected(
    *, a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the answer in float64, in which sums below 2**53 are exact."""
    return {"out": (a.double() @ b.double().T) * a_scale.double()[:, None] * b_scale.double()[None, :]}


def error_scale(
    *, a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of float32's eps."""
    out = expected(a=a, b=b, a_scale=a_scale, b_scale=b_scale)["out"]
    return {"out": ROUNDINGS * 0.5 * out.abs()}


def _scales(generator: torch.Generator, count: int) -> torch.Tensor:
    """Powers of ten from -1 to +1, all of them present, in a random order."""
    exponents = torch.linspace(-1.0, 1.0, count, dtype=torch.float32, device=generator.device)
    return 10 ** exponents[torch.randperm(count, generator=generator, device=generator.device)]


def _powers(generator: torch.Generator, count: int) -> torch.Tensor:
    return 2.0 ** _between(generator, -2, 2, 1, count)[0]


# --- what is drawn: every function returns a (m, k) and b (n, k), whole numbers in float32 ---------------------------

Made = tuple[torch.Tensor, torch.Tensor]


def _spread(generator: torch.Generator, m: int, n: int, k: int) -> Made:
    """Normal, as rounding leaves it: a few numbers of a row reach the largest magnitude."""
    made = [torch.randn(rows, k, generator=generator, device=generator.device) for rows in (m, n)]
    a, b = ((one * 40).round().clamp(-LARGEST, LARGEST) for one in made)
    return a, b


def _readable(generator: torch.Generator, m: int, n: int, k: int) -> Made:
    """From -3 to 3, with scales that are powers of two: everything can be seen."""
    return _between(generator, -3, 3, m, k), _between(generator, -3, 3, n, k)


def _extremes(generator: torch.Generator, m: int, n: int, k: int) -> Made:
    """-128 and 127 only, more of one than of the other."""
    made = [torch.rand(rows, k, generator=generator, device=generator.device) for rows in (m, n)]
    a, b = (torch.where(one < 0.7, SMALLEST, LARGEST).float() for one in made)
    return a, b


def _saturated(generator: torch.Generator, m: int, n: int, k: int) -> Made:
    """Rows of one number, -128 or 127: sums are as large as they can be, of both signs."""
    a, b = _extremes(generator, m, n, 1)
    return a.expand(m, k), b.expand(n, k)


def _cancelling(generator: torch.Generator, m: int, n: int, k: int) -> Made:
    """The first half of K adds up, the second takes it away again, but for a few pairs: what is left is small.

    From k = 3000 on the sum on its way is beyond 2**24, where float32 no longer holds every integer.
    """
    half = k // 2
    a, b = _between(generator, -LARGEST, LARGEST, m, k), _between(generator, -LARGEST, LARGEST, n, k)
    paired = torch.randperm(half, generator=generator, device=generator.device)[KEPT:]
    sign = _between(generator, 0, 1, m, 1) * 2 - 1
    a[:, paired] = _between(generator, 100, LARGEST, m, len(paired)) * sign
    b[:, paired] = _between(generator, 100, LARGEST, n, len(paired))
    a[:, half + paired], b[:, half + paired] = -a[:, paired], b[:, paired]
    return a, b


def _between(generator: torch.Generator, low: int, high: int, rows: int, columns: int) -> torch.Tensor:
    return torch.randint(low, high + 1, (rows, columns), generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int, int], Made]] = {
    "spread": _spread,
    "readable": _readable,
    "extremes": _extremes,
    "saturated": _saturated,
    "cancelling": _cancelling,
}
