"""Illegal: every key is stored at its place, also where fewer are asked for."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sort_kernel(keys_ptr, lengths_ptr, values_ptr, indices_ptr, n, k, BLOCK: tl.constexpr):
    row, at = tl.program_id(axis=0).to(tl.int64), tl.arange(0, BLOCK)
    mask = at < tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + at, mask=mask, other=0.0)
    negative = (x < 0) & mask
    positive = (x >= 0) & mask
    below = tl.cumsum(positive.to(tl.int32), axis=0) - 1
    behind = tl.sum(positive.to(tl.int32), axis=0) + tl.cumsum(negative.to(tl.int32), axis=0) - 1
    place = tl.where(negative, behind, below)
    tl.store(values_ptr + row * k + place, x, mask=negative | positive)
    tl.store(indices_ptr + row * k + place, at, mask=negative | positive)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    _sort_kernel[(rows,)](keys, lengths, values, indices, n, k, BLOCK=triton.next_power_of_2(n))
