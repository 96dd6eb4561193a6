"""What tests and `reference/measure.py` have to know of the GEMM with an epilogue. Staff only."""

from __future__ import annotations

import torch
from torch.nn import functional

SIZES = (
    {"m": 1, "n": 1, "k": 1, "parts": 1},
    {"m": 3, "n": 2, "k": 5, "parts": 2},
    {"m": 40, "n": 33, "k": 250, "parts": 1},
    {"m": 33, "n": 20, "k": 210, "parts": 2},
)
COUNTED = frozenset({"add", "gelu", "silu", "mul"})
"""Products of matrices are counted by torch's own counter."""


def oracle(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    h = [torch.add(a.double() @ part.double().T, own.double()) for part, own in zip(b, bias, strict=True)]
    active = functional.gelu(h[0], approximate="tanh") if len(h) == 1 else torch.mul(functional.silu(h[0]), h[1])
    return {"out": torch.add(active, residual.double())}


def honest(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    h = [a.float() @ part.float().T + own.float() for part, own in zip(b, bias, strict=True)]
    active = functional.gelu(h[0], approximate="tanh") if len(h) == 1 else functional.silu(h[0]) * h[1]
    return {"out": (active + residual.float()).to(a.dtype)}


def library(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, out: torch.Tensor, *_: int
) -> None:
    """The exercise by torch's operators, one after another, timed beside our kernels."""
    h = [functional.linear(a, part, own) for part, own in zip(b, bias, strict=True)]
    active = functional.gelu(h[0], approximate="tanh") if len(h) == 1 else functional.silu(h[0]) * h[1]
    torch.add(active, residual, out=out)
