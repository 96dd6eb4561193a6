"""A product of int8 matrices, summed exactly."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, size: int, k: int
) -> dict[str, torch.Tensor]:
    """Return `a` and `b` of shape (size, k), from -128 to 127; `distribution` is `integers`."""
    if distribution != "integers":
        raise ValueError(distribution)
    return {
        name: torch.randint(-128, 128, (size, k), generator=generator, device=generator.device).to(dtype)
        for name in ("a", "b")
    }


def expected(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `c` of shape (size, size), int64."""
    return {"c": (a.double() @ b.double().T).long()}
