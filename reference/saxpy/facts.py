"""What tests and `reference/measure.py` have to know of SAXPY. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"n": 1}, {"n": 7}, {"n": 1500})
COUNTED = frozenset({"mul", "add"})


def oracle(a: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    return {"out": torch.add(torch.mul(x.double(), float(a)), y.double())}


def honest(a: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once more, which has to pass."""
    return {"out": (a * x.float() + y.float()).to(x.dtype)}


def library(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, *_: int) -> None:
    """The operator that does the exercise, timed beside our kernels."""
    torch.add(y, x, alpha=a, out=out)
