"""How many of m keys from 0 to 254 are odd."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, m: int
) -> dict[str, torch.Tensor]:
    """Return `keys` of shape (m,), `distribution` is `uniform`: all values equally often."""
    drawn = torch.empty(m, dtype=dtype, device=generator.device)
    return {"keys": getattr(drawn, f"{distribution}_")(0, 255, generator=generator).to(torch.uint8)}


def expected(*, keys: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the count, an integer."""
    return {"count": (keys % 2 == 1).sum()}
