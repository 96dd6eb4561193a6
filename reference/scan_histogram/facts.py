"""What tests and `reference/measure.py` have to know of scan and histogram. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"n": 1, "m": 1}, {"n": 7, "m": 300}, {"n": 1500, "m": 40})
COUNTED = frozenset({"cumsum", "bincount"})


def oracle(x: torch.Tensor, keys: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    return {"prefix": torch.cumsum(x.double(), 0), "counts": torch.bincount(keys.long(), minlength=256).double()}


def honest(x: torch.Tensor, keys: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, which has to pass."""
    counts = torch.bincount(keys.long(), minlength=256)
    return {"prefix": x.float().cumsum(0).to(x.dtype), "counts": counts.to(torch.int32)}


def library(x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, *_: int) -> None:
    """The operators that do the exercise, timed beside our kernels; keys are counted a piece at a time."""
    torch.cumsum(x, 0, out=prefix)
    counts.zero_()
    for start in range(0, keys.numel(), 2**26):
        counts.add_(torch.bincount(keys[start : start + 2**26], minlength=256))
