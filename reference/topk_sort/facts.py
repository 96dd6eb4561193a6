"""What tests and `reference/measure.py` have to know of top-k and radix sort. Staff only."""

from __future__ import annotations

import math

import torch

SIZES = ({"rows": 1, "n": 1, "k": 1}, {"rows": 5, "n": 37, "k": 9}, {"rows": 2, "n": 301, "k": 320})
COUNTED: frozenset[str] = frozenset()
"""Nothing is computed."""


def oracle(keys: torch.Tensor, lengths: torch.Tensor, asked: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise row by row, sorted by Python."""
    k = int(asked)
    values = torch.full((len(keys), k), -torch.inf, dtype=torch.float64)
    indices = torch.full((len(keys), k), -1, dtype=torch.int32)
    for r, length in enumerate(lengths.tolist()):
        row = keys[r, :length].double().tolist()
        # NaN first; sorted() is stable, and -0.0 and 0.0 are equal.
        negated = [-math.inf if math.isnan(key) else -key for key in row]
        order = sorted(range(length), key=lambda i, row=row, negated=negated: (not math.isnan(row[i]), negated[i]))[:k]
        values[r, : len(order)] = torch.tensor([row[i] for i in order], dtype=torch.float64)
        indices[r, : len(order)] = torch.tensor(order, dtype=torch.int32)
    return {"values": values, "indices": indices}


def honest(keys: torch.Tensor, lengths: torch.Tensor, asked: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as torch's own stable sort gives it, which has to pass."""
    k = int(asked)
    values = torch.full((len(keys), k), -torch.inf, dtype=keys.dtype)
    indices = torch.full((len(keys), k), -1, dtype=torch.int32)
    for r, length in enumerate(lengths.tolist()):
        value, index = keys[r, :length].sort(descending=True, stable=True)
        values[r, : min(k, length)], indices[r, : min(k, length)] = value[:k], index[:k].int()
    return {"values": values, "indices": indices}


def library(
    keys: torch.Tensor, _: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, _rows: int, n: int, k: int
) -> None:
    """The operators that do the exercise on full rows, timed beside our kernels: topk knows no order of equals."""
    value, index = keys.topk(k, dim=1) if k < n else keys.sort(dim=1, descending=True, stable=True)
    values.copy_(value)
    indices.copy_(index)
