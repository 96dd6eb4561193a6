"""A matrix of normal numbers, turned left to right."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (rows, cols), `distribution` is `normal`."""
    x = torch.empty(rows, cols, dtype=torch.float32, device=generator.device)
    return {"x": getattr(x, f"{distribution}_")(generator=generator).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `x` with its columns in reverse order, as float64."""
    return {"out": x.flip(1).double()}
