"""The logarithm of each row's sum of exponentials, where the largest value may stand anywhere.

Changing the base rounds each value and the result, 2·eps32·max|x|; the sum is off by (√cols + 8)·eps32 of itself.
"""

from __future__ import annotations

import math

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols); `distribution` is `spread`: rows of deviations from 1 to 31."""
    if distribution != "spread":
        raise ValueError(distribution)
    x = torch.randn(rows, cols, generator=generator, device=generator.device)
    return {"x": (x * (1 + 30 * torch.rand(rows, 1, generator=generator, device=generator.device))).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `lse` of shape (rows,), as float64."""
    return {"lse": x.double().logsumexp(dim=1)}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off an honest kernel may be, in units of eps32."""
    return {"lse": 4 * x.double().abs().amax(dim=1) + math.sqrt(x.shape[1]) + 8}
