"""Numbers as a whole number and a rest of at most a half, both exact in float32."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, size: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (size,); `distribution` is `spread`: from -120 to 120."""
    if distribution != "spread":
        raise ValueError(distribution)
    x = 240 * torch.rand(size, generator=generator, device=generator.device) - 120
    return {"x": x.to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return 2^n and x - n for the whole number n nearest to x, the even one of two, as float64."""
    whole = x.double().round()
    return {"power": whole.exp2(), "rest": x.double() - whole}
