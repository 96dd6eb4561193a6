"""Temperatures: inputs with structure, and how far off an honest answer may be.

An honest kernel computes 1.8 x + 32, or 9 x / 5 + 32, in float32. Rounding 1.8 and the product, or two products, costs
at most one eps of |1.8 x|, and rounding the sum half an eps of the result, which is at most |1.8 x| + 32. That is below
1.5 eps of |1.8 x| + 32, whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

APART = {"x": 0, "out": 0}
_KNOWN = (-273.15, -40.0, -18.0, -10.0, 0.0, 5.0, 10.0, 20.0, 25.0, 37.0, 60.0, 100.0, 180.0)
_HUGE = 3e37
"""Nine times it is still finite in float32."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,), in degrees Celsius; where its structure sits is drawn anew from `generator`."""
    return {"x": _DISTRIBUTIONS[distribution](generator, n).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return degrees Fahrenheit, in float64."""
    return {"out": x.double() * 1.8 + 32.0}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off an honest kernel may be, in units of eps."""
    return {"out": 1.5 * ((1.8 * x.double()).abs() + 32.0)}


def _known(generator: torch.Generator, n: int) -> torch.Tensor:
    """Freezing and boiling water, a fever, the point where both scales agree."""
    known = torch.tensor(_KNOWN, dtype=torch.float32, device=generator.device)
    return known[torch.randint(len(_KNOWN), (n,), generator=generator, device=generator.device)]


def _days(generator: torch.Generator, n: int) -> torch.Tensor:
    """A reading every eight hours: a wave through the year that begins anywhere, and the weather of the day."""
    turn = torch.arange(n, device=generator.device).double() / 1095 + float(_uniform(generator, 1, 0, 1))
    wave = 12 * torch.cos(2 * torch.pi * turn).float()
    return 10 + wave + _uniform(generator, n, -9, 9)


def _near_zero(generator: torch.Generator, n: int) -> torch.Tensor:
    """1.8 x is nearly -32, so that the sum shows what a lower precision threw away."""
    return -160 / 9 + _uniform(generator, n, -0.05, 0.05)


def _extreme(generator: torch.Generator, n: int) -> torch.Tensor:
    """Every value a type has room for, in random places: infinite, huge, ordinary, subnormal, and both zeros."""
    values = torch.empty(n, dtype=torch.float32, device=generator.device)
    values = (10 ** values.uniform_(-44, 4, generator=generator)).copysign_(_uniform(generator, n, -1, 1))
    kind = torch.randint(16, (n,), generator=generator, device=generator.device)
    values = torch.where(kind == 0, torch.inf, values)
    values = torch.where(kind == 1, -torch.inf, values)
    values = torch.where(kind == 2, _HUGE, values)
    values = torch.where(kind == 3, -0.0, values)
    return torch.where(kind == 4, -_HUGE, values)


def _uniform(generator: torch.Generator, n: int, low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(n, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int], torch.Tensor]] = {
    "known": _known,
    "days": _days,
    "near_zero": _near_zero,
    "extreme": _extreme,
}
