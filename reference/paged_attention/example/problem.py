"""The mean of each sequence's rows, which lie in pages in any order; NaN in every place without a row.

A sum of n numbers is off by (√n + 8)·eps32 of the sum of their sizes, and the division costs one eps32 more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

Tensors = dict[str, torch.Tensor]


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str,
    batch: int, dim: int, page_size: int, pages: int, entries: int,
) -> Tensors:  # fmt: skip
    """Return `cache`, `indptr`, `indices` and `last_page_len`; `distribution` is `ragged`: some sequences are empty."""
    if distribution != "ragged":
        raise ValueError(distribution)
    where = {"generator": generator, "device": generator.device}
    owner = torch.randint(0, batch, (entries,), **where).sort().values
    counts = torch.bincount(owner, minlength=batch)
    last = torch.randint(1, page_size + 1, (batch,), **where) * (counts > 0)
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    indices = torch.randperm(pages, **where)[:entries]
    rows = torch.randn(pages, page_size, dim, **where)
    cache = torch.full_like(rows, torch.nan)
    for b in range(batch):
        mine = indices[indptr[b] : indptr[b + 1]]
        cache[mine] = rows[mine]
        if len(mine):
            cache[mine[-1], int(last[b]) :] = torch.nan
    return {
        "cache": cache.to(dtype), "indptr": indptr.int(), "indices": indices.int(), "last_page_len": last.int()
    }  # fmt: skip


def _rows(
    cache: torch.Tensor, indptr: torch.Tensor, indices: torch.Tensor, last: torch.Tensor
) -> Iterator[torch.Tensor]:
    for b in range(len(last)):
        mine = cache[indices[indptr[b] : indptr[b + 1]].long()].double().flatten(0, 1)
        yield mine[: max(0, len(mine) - cache.shape[1] + int(last[b]))]


def expected(
    *, cache: torch.Tensor, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor
) -> Tensors:
    """Return `out` of shape (batch, dim), as float64; 0 for a sequence without rows."""
    rows = _rows(cache, indptr, indices, last_page_len)
    return {"out": torch.stack([one.sum(dim=0) / max(1, len(one)) for one in rows])}


def error_scale(
    *, cache: torch.Tensor, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor
) -> Tensors:
    """Return how far off an honest kernel may be, in units of eps32."""
    rows = _rows(cache, indptr, indices, last_page_len)
    return {"out": torch.stack([(math.sqrt(len(one)) + 9) * one.abs().sum(dim=0) / max(1, len(one)) for one in rows])}
