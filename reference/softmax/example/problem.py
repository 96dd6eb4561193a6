"""The largest value of each row, where all of them are below zero."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols); `distribution` is `negative`: values from -20 to -10."""
    if distribution != "negative":
        raise ValueError(distribution)
    x = torch.rand(rows, cols, generator=generator, device=generator.device)
    return {"x": (-10 - 10 * x).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the maxima, of shape (rows,), as float64."""
    return {"out": x.amax(dim=1).double()}
