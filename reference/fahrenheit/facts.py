"""What tests and `reference/measure.py` have to know of Celsius to Fahrenheit. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"n": 1}, {"n": 7}, {"n": 1500})
COUNTED = frozenset({"mul", "add"})


def oracle(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    return {"out": torch.add(torch.mul(x.double(), 1.8), 32.0)}


def honest(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it, which has to pass."""
    return {"out": (1.8 * x.float() + 32.0).to(x.dtype)}


def library(x: torch.Tensor, out: torch.Tensor, *_: int) -> None:
    """The operators that do the exercise, timed beside our kernels."""
    torch.mul(x, 1.8, out=out).add_(32.0)
