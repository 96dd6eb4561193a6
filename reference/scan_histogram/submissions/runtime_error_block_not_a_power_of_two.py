"""Fails when called: a tile has to be a power of two."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scan_kernel(x_ptr, prefix_ptr, n, TILE: tl.constexpr):
    offsets = tl.arange(0, TILE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(prefix_ptr + offsets, tl.cumsum(x, axis=0).to(prefix_ptr.dtype.element_ty), mask=offsets < n)


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    _scan_kernel[(1,)](x, prefix, n, TILE=1000)
