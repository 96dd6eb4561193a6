"""What tests and `reference/measure.py` have to know of vector add. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"n": 1}, {"n": 7}, {"n": 1500})
COUNTED = frozenset({"add"})


def oracle(x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    return {"out": torch.add(x.double(), y.double()).to(x.dtype).double()}


def honest(x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it, which has to pass."""
    return {"out": x + y}


def library(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, *_: int) -> None:
    """The operator that does the exercise, timed beside our kernels."""
    torch.add(x, y, out=out)
