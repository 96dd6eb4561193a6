"""What tests and `reference/measure.py` have to know of transpose. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"rows": 1, "cols": 1}, {"rows": 2, "cols": 7}, {"rows": 31, "cols": 45})
COUNTED: frozenset[str] = frozenset()
"""Nothing is computed."""


def oracle(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise, without arithmetic."""
    return {"out": x.double().t()}


def honest(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch gives it, which has to pass."""
    return {"out": x.t().contiguous()}


def library(x: torch.Tensor, out: torch.Tensor, *_: int) -> None:
    """The operator that does the exercise, timed beside our kernels."""
    out.copy_(x.t())
