"""Numbers from 0 to 7.5, rounded to multiples of a half, as codes of four bits, two in a byte."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (2 n,), from 0 to 7.5; `distribution` is `steps`: a third are half-way between two steps."""
    if distribution != "steps":
        raise ValueError(distribution)
    x = 7.5 * torch.rand(2 * n, generator=generator, device=generator.device)
    x[::3] = (4 * x[::3]).round() / 4
    return {"x": x.to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the bytes, uint8: the even place in the low four bits."""
    codes = (2 * x.double()).round().to(torch.uint8)
    return {"packed": codes[0::2] + 16 * codes[1::2]}
