"""Scaled rows and their gradients: y = a · x, dx = a · dy, da = sum of dy · x over a row.

A product is rounded once, from float32 perhaps twice; a sum of n terms in float32 is off by no more than
(√n + 4)·eps32·Σ|terms| and is rounded once more.
"""

from __future__ import annotations

import math

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` and `dy` of (rows, cols) and `a` of (rows); `distribution` is `default`: values around 0."""
    if distribution != "default":
        raise ValueError(distribution)
    shapes = {"x": (rows, cols), "a": (rows,), "dy": (rows, cols)}
    return {
        name: torch.randn(shape, generator=generator, device=generator.device).to(dtype)
        for name, shape in shapes.items()
    }


def expected(*, x: torch.Tensor, a: torch.Tensor, dy: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return all three in float64."""
    factor = a.double()[:, None]
    return {"y": factor * x.double(), "dx": factor * dy.double(), "da": (dy.double() * x.double()).sum(dim=1)}


def error_scale(*, x: torch.Tensor, a: torch.Tensor, dy: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off an honest answer may be, in units of its type's eps."""
    finfo = torch.finfo(x.dtype)
    right = expected(x=x, a=a, dy=dy)
    rounded = {name: value.abs().clamp(min=finfo.tiny) for name, value in right.items()}
    terms = (dy.double() * x.double()).abs().sum(dim=1)
    rounded["da"] += (math.sqrt(x.shape[1]) + 4) * terms * (torch.finfo(torch.float32).eps / finfo.eps)
    return rounded
