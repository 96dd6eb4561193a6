"""What tests and `reference/measure.py` have to know of the quantised GEMM. Staff only."""

from __future__ import annotations

import torch

SIZES = (
    {"m": 1, "n": 1, "k": 1},
    {"m": 3, "n": 2, "k": 5},
    {"m": 33, "n": 20, "k": 1210},
    {"m": 9, "n": 14, "k": 3300},
)
COUNTED = frozenset({"mul"})
"""Products of matrices are counted by torch's own counter."""
ROWS = 17
"""The least that torch's operator for int8 multiplies on a GPU."""


def oracle(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    by_row = torch.mul(a.double() @ b.double().T, a_scale.double()[:, None])
    return {"out": torch.mul(by_row, b_scale.double()[None, :])}


def honest(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer from exact sums, rounded to float32 three times, which has to pass."""
    sums = (a.double() @ b.double().T).to(torch.int32)
    return {"out": sums.float() * a_scale[:, None] * b_scale[None, :]}


def library(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, out: torch.Tensor, *_: int
) -> None:
    """The exercise by torch's operator for int8 and two products; where it takes no such sizes, in float64."""
    (m, k), n = a.shape, len(b)
    taken = m >= ROWS and n % 8 == 0 and k % 8 == 0
    sums = torch._int_mm(a, b.T) if taken else a.double() @ b.double().T  # noqa: SLF001 - torch's only name for it
    torch.mul(sums * a_scale[:, None], b_scale[None, :], out=out)
