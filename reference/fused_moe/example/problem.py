"""Rows of groups: out[i] = x[source[i]] · factors[g], where the first counts[0] rows are group 0's, and so on."""

from __future__ import annotations

import torch


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, groups: int
) -> dict[str, torch.Tensor]:
    """Return `x` (rows, 64), `source` and `counts`, int32, and `factors`; counts add up to rows."""
    if distribution != "drawn":
        raise ValueError(distribution)
    device = generator.device
    counts = torch.randint(groups, (rows,), generator=generator, device=device).bincount(minlength=groups)
    return {
        "x": torch.randn(rows, 64, generator=generator, dtype=dtype, device=device),
        "source": torch.randperm(rows, generator=generator, device=device).int(),
        "counts": counts.int(),
        "factors": torch.randn(groups, generator=generator, dtype=dtype, device=device),
    }


def expected(
    *, x: torch.Tensor, source: torch.Tensor, counts: torch.Tensor, factors: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the products in float64."""
    return {"out": x[source.long()].double() * factors.double().repeat_interleave(counts.long())[:, None]}
