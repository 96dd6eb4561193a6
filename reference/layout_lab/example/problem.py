"""Indices in order from a random origin, and where they lie in a matrix whose rows are `row_stride` apart."""

from __future__ import annotations

import torch

COLS, ROW_STRIDE = 33, 40
"""Those of the only case."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, cols: int, row_stride: int, n: int
) -> dict[str, torch.Tensor]:
    """Return `index` of shape (n,); `distribution` is `any`."""
    if (cols, row_stride, distribution) != (COLS, ROW_STRIDE, "any"):
        raise ValueError("the answer is known for one case only")
    return {"index": torch.randint(0, 5000, (n,), generator=generator, device=generator.device).to(dtype)}


def expected(*, index: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the offsets, int64."""
    return {"out": index.long() // COLS * ROW_STRIDE + index.long() % COLS}
