"""The mean of each row, where it is far larger than the deviation.

A running mean is corrected once for every value or block, and each correction rounds it: off by no more than
(√cols + 4)·eps32·max|x|.
"""

from __future__ import annotations

import math

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols); `distribution` is `far_from_zero`: a row's values lie around -50 to 50."""
    if distribution != "far_from_zero":
        raise ValueError(distribution)
    x = torch.randn(rows, cols, generator=generator, device=generator.device)
    centres = 100 * torch.rand(rows, 1, generator=generator, device=generator.device) - 50
    return {"x": (x + centres).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the means, of shape (rows,), as float64."""
    return {"out": x.double().mean(dim=1)}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far off an honest kernel may be, in units of eps32."""
    return {"out": (math.sqrt(x.shape[1]) + 4) * x.double().abs().amax(dim=1)}
