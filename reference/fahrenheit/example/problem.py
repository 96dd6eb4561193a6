"""Normal numbers as degrees Celsius, in kelvin: 273.15 and the sum are rounded once each."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,), `distribution` is `normal`."""
    x = torch.empty(n, dtype=torch.float32, device=generator.device)
    return {"x": getattr(x, f"{distribution}_")(generator=generator).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return kelvin, as float64."""
    return {"out": x.double() + 273.15}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off two roundings may be, in units of eps."""
    return {"out": x.double().abs() + 273.15}
