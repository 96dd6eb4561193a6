"""What tests and `reference/measure.py` have to know of the tensor-core GEMM. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"m": 1, "n": 1, "k": 1}, {"m": 3, "n": 1, "k": 2}, {"m": 40, "n": 33, "k": 250})
COUNTED: frozenset[str] = frozenset()
"""A product of matrices is counted by torch's own counter."""


def oracle(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic."""
    return {"c": a.double() @ b.double().T}


def honest(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    return {"c": (a.float() @ b.float().T).to(a.dtype)}


def library(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, *_: int) -> None:
    """The operator that does the exercise, timed beside our kernels."""
    torch.mm(a, b.T, out=c)
