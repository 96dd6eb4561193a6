"""Twice a vector plus one. Doubling is exact, so one rounding is all there is, fused or not: equality is asked for."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,): magnitudes from 1e-4 to 1e4 with both signs."""
    if distribution != "decades":
        raise ValueError(distribution)
    unit = torch.rand((2, n), generator=generator, dtype=torch.float32, device=generator.device)
    return {"x": (10 ** (8 * unit[0] - 4) * (unit[1] - 0.5).sign()).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the correctly rounded value, as float64."""
    return {"out": (2 * x.double() + 1).to(x.dtype).double()}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return zeros: nothing but the correctly rounded value is right."""
    return {"out": torch.zeros_like(x, dtype=torch.float64)}
