"""A sum, rounded to the type of its terms, and the totals of the rounded rows.

A total of n terms in float32 is off by no more than (√n + 4)·eps32·Σ|s|.
"""

from __future__ import annotations

import math

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` and `r` of shape (rows, cols); `distribution` is `positive`: values from 1 to 2."""
    if distribution != "positive":
        raise ValueError(distribution)
    x, r = (1 + torch.rand(rows, cols, generator=generator, device=generator.device) for _ in range(2))
    return {"x": x.to(dtype), "r": r.to(dtype)}


def expected(*, x: torch.Tensor, r: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `s`, rounded to the type of `x`, and its rows' totals, both as float64."""
    s = (x.float() + r.float()).to(x.dtype).double()
    return {"s": s, "total": s.sum(dim=1)}


def error_scale(*, x: torch.Tensor, r: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off an honest total may be, in units of eps32; the sum itself is exact."""
    s = (x.float() + r.float()).to(x.dtype).double()
    return {"s": torch.zeros_like(s), "total": (math.sqrt(s.shape[1]) + 4) * s.abs().sum(dim=1)}
