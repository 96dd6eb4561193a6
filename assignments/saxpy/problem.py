"""SAXPY: inputs with structure, the answer in float64, and how far off an honest kernel may be.

    out[i] = a · x[i] + y[i]

Honest kernels differ in their roundings: a fused multiply-add rounds once, a multiplication and an addition twice. With
u = eps/2 the second form is off by at most u·|a·x| + u·|out| before the result is rounded to its own type, so

    |error| ≤ (|a·x| + |out|) · eps32/2 + |out| · eps/2

where eps is that of the output's type. A kernel that works in a 16-bit type throughout is off by |a·x| · eps/2, which
counts where the two terms cancel.

Inputs are drawn in float32: none is wider, and a case of 2^28 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps

APART = {"x": 0, "y": 0, "out": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `a` without dimensions (float32), and `x` and `y` of shape (n,); all drawn anew from `generator`."""
    a, x, y = _special(generator, n, dtype) if distribution == "special" else _DISTRIBUTIONS[distribution](generator, n)
    return {"a": a, "x": x.to(dtype), "y": y.to(dtype)}


def expected(*, a: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return a·x + y in float64, which holds both exactly before the last rounding of the sum."""
    return {"out": a.double() * x.double() + y.double()}


def error_scale(*, a: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    product = (a.double() * x.double()).abs()
    out = (a.double() * x.double() + y.double()).abs()
    finfo = torch.finfo(x.dtype)
    # Below the normal range of the type its spacing is absolute.
    rounding = 0.5 * out.clamp(min=finfo.tiny)
    return {"out": rounding + 0.5 * (product + out) * (FLOAT32_EPS / finfo.eps)}


Drawn = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, n: int) -> Drawn:
    """Magnitudes over six decades with both signs."""
    return _factor(generator), _signed_decades(generator, n), _signed_decades(generator, n)


def _cancelling(generator: torch.Generator, n: int) -> Drawn:
    """`y` is nearly `-a·x`: the sum shows what a lower precision threw away."""
    a, x = _factor(generator), _signed_decades(generator, n)
    return a, x, -a * x * (1 + 0.02 * _uniform(generator, (n,), -1, 1))


def _runs(generator: torch.Generator, n: int) -> Drawn:
    """Runs of equal integers at a random place: an element taken from a neighbour shows at their ends."""
    step = torch.arange(n, device=generator.device) // max(1, n // 9)
    x = (step % 5 - 2).float().roll(_integer(generator, n))
    return _factor(generator).round(), x, (step % 7).float().roll(_integer(generator, n))


def _no_factor(generator: torch.Generator, n: int) -> Drawn:
    """`a` is zero, one or minus one: a kernel that learned a factor by heart gives itself away."""
    chosen = torch.randint(-1, 2, (), generator=generator, device=generator.device)
    return chosen.float(), _signed_decades(generator, n), _signed_decades(generator, n)


def _special(generator: torch.Generator, n: int, dtype: torch.dtype) -> Drawn:
    """Pairs whose result has a rule of its own, in random order: infinities, NaN, very large numbers, subnormal ones.

    No product overflows: one that is rounded by itself would be infinite where a fused one is not.
    """
    info = torch.finfo(dtype)
    small = 64 * info.tiny * info.eps
    x = [torch.inf, -torch.inf, torch.nan, 1.0, 1.0, torch.inf, info.max / 64, small, small, -0.0, 2.0]
    y = [1.0, 2.0, 1.0, torch.nan, -torch.inf, torch.inf, info.max / 4, 0.0, -small, -0.0, 5.0]
    which = torch.randint(len(x), (n,), generator=generator, device=generator.device)
    pairs = torch.tensor([x, y], dtype=torch.float32, device=generator.device)[:, which]
    factor = _uniform(generator, (), 2, 12) * (1 - 2 * _integer(generator, 2))
    return factor, pairs[0].contiguous(), pairs[1].contiguous()


def _factor(generator: torch.Generator) -> torch.Tensor:
    """Between 0.5 and 12, with either sign."""
    sign = 1 - 2 * torch.randint(2, (), generator=generator, device=generator.device)
    return sign * _uniform(generator, (), 0.5, 12)


def _signed_decades(generator: torch.Generator, n: int) -> torch.Tensor:
    return (10 ** _uniform(generator, (n,), -3, 3)).copysign_(_uniform(generator, (n,), -1, 1))


def _uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _integer(generator: torch.Generator, n: int) -> int:
    return int(torch.randint(n, (1,), generator=generator, device=generator.device))


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int], Drawn]] = {
    "decades": _decades,
    "cancelling": _cancelling,
    "runs": _runs,
    "no_factor": _no_factor,
}
