"""A product with bias and ReLU.

Summing k products in float32 is off by (√k + 4)·eps32·(Σ|a||b| + |bias|), and storing by half an eps of the type.
"""

from __future__ import annotations

import math

import torch

EPS32 = torch.finfo(torch.float32).eps


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, size: int, k: int
) -> dict[str, torch.Tensor]:
    """Return `a` and `b` of shape (size, k) and `bias` of (size,); `distribution` is `normal`."""
    if distribution != "normal":
        raise ValueError(distribution)
    shapes = {"a": (size, k), "b": (size, k), "bias": (size,)}
    return {
        name: torch.randn(shape, generator=generator, device=generator.device).to(dtype)
        for name, shape in shapes.items()
    }


def expected(*, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `c` of shape (size, size), as float64."""
    return {"c": (a.double() @ b.double().T + bias.double()).clamp(min=0)}


def error_scale(*, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off an honest kernel may be, in units of eps of the type."""
    finfo = torch.finfo(a.dtype)
    terms = a.double().abs() @ b.double().abs().T + bias.double().abs()
    rounding = 0.5 * (a.double() @ b.double().T + bias.double()).abs().clamp(min=finfo.tiny)
    return {"c": rounding + (math.sqrt(a.shape[1]) + 4) * EPS32 / finfo.eps * terms}
