"""Even numbers first: a stable partition of n numbers that are not negative."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,), int32, from 0 to 999."""
    if distribution != "integers":
        raise ValueError(f"{distribution} of {dtype}")
    return {"x": torch.randint(1000, (n,), generator=generator, device=generator.device).int()}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the even numbers, and then the odd ones."""
    return {"out": torch.cat([x[x % 2 == 0], x[x % 2 == 1]])}
