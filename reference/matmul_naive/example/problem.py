"""The outer product of two vectors of normal numbers, rounded once."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, m: int, n: int
) -> dict[str, torch.Tensor]:
    """Return `u` of shape (m,) and `v` of shape (n,), `distribution` is `normal`."""
    u, v = (torch.empty(size, dtype=torch.float32, device=generator.device) for size in (m, n))
    return {name: getattr(x, f"{distribution}_")(generator=generator).to(dtype) for name, x in (("u", u), ("v", v))}


def expected(*, u: torch.Tensor, v: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the products, each rounded to the type of `u`, as float64."""
    return {"out": torch.outer(u, v).double()}
