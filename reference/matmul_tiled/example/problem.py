"""Rows of k numbers times one matrix of k x k; k is 16."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, m: int, k: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (m, k) and `r` of shape (k, k), `distribution` is `normal`."""
    x, r = (torch.empty(rows, k, dtype=torch.float32, device=generator.device) for rows in (m, k))
    return {name: getattr(y, f"{distribution}_")(generator=generator).to(dtype) for name, y in (("x", x), ("r", r))}


def expected(*, x: torch.Tensor, r: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the products of rows and matrix, as float64."""
    return {"out": x.double() @ r.double()}


def error_scale(*, x: torch.Tensor, r: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the largest error of a chain of 16 products and sums in float32 over eps."""
    return {"out": 16 * (x.double().abs() @ r.double().abs())}
