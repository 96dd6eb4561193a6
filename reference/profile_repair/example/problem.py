"""Every head of a token times the token's 64 gains; a product in float32, rounded once."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, tokens: int, heads: int
) -> dict[str, torch.Tensor]:
    """Return `x` (tokens, heads · 64) and `gain` (tokens, 64; float32), from 1 to 2; `distribution` is `uniform`."""
    if distribution != "uniform":
        raise ValueError(distribution)
    x, gain = (1 + torch.rand(tokens, cols, generator=generator, device=generator.device) for cols in (heads * 64, 64))
    return {"x": x.to(dtype), "gain": gain}


def expected(*, x: torch.Tensor, gain: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the products, as float64."""
    return {"out": (x.double().view(len(x), -1, 64) * gain.double()[:, None]).view(x.shape)}


def error_scale(*, x: torch.Tensor, gain: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return half an eps of the type for each product, and float32's own."""
    return {"out": 0.51 * expected(x=x, gain=gain)["out"].abs()}
