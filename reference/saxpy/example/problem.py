"""Normal numbers, of which the negative ones become 0. `n` is a multiple of 8."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,), `distribution` is `normal`."""
    x = torch.empty(n, dtype=torch.float32, device=generator.device)
    return {"x": getattr(x, f"{distribution}_")(generator=generator).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the larger of `x` and 0, as float64."""
    return {"out": x.double().clamp(min=0)}
