"""One product of small integers, which is exact in float32."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, size: int
) -> dict[str, torch.Tensor]:
    """Return `a` and `b` of shape (size, size); `distribution` is `integers`: from -8 to 8."""
    if distribution != "integers":
        raise ValueError(distribution)
    device = generator.device
    a, b = (torch.randint(-8, 9, (size, size), generator=generator, device=device) for _ in range(2))
    return {"a": a.to(dtype), "b": b.to(dtype)}


def expected(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the product of `a` and the transposed `b`, of shape (size, size), as float64."""
    return {"c": a.double() @ b.double().T}
