"""What tests and `reference/measure.py` have to know of reduction. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"n": 1}, {"n": 7}, {"n": 1500})
COUNTED = frozenset({"sum", "amax"})


def oracle(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    return {"total": torch.sum(x.double()).reshape(1), "largest": torch.amax(x.double()).reshape(1)}


def honest(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, which has to pass."""
    return {"total": x.float().sum().reshape(1), "largest": x.amax().reshape(1)}


def library(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, *_: int) -> None:
    """The operators that do the exercise, timed beside our kernels: two passes over x."""
    torch.sum(x, 0, keepdim=True, dtype=torch.float32, out=total)
    torch.amax(x, 0, keepdim=True, out=largest)
