"""Fails when called: a block has to be a power of two."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy_kernel(keys_ptr, values_ptr, n, k, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    at = tl.arange(0, BLOCK)
    x = tl.load(keys_ptr + row * n + at, mask=at < n, other=0.0)
    tl.store(values_ptr + row * k + at, x, mask=at < k)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    _copy_kernel[(rows,)](keys, values, n, k, BLOCK=1000)
