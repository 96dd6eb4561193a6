"""Scan and histogram, first milestone: one program does everything, tile after tile.

What came before a tile is a number that the program carries along. Right and simple, but only one multiprocessor works.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _scan_kernel(x_ptr, prefix_ptr, n, TILE: tl.constexpr):
    before = 0.0
    for start in range(0, n, TILE):
        offsets = start + tl.arange(0, TILE)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        prefix = before + tl.cumsum(x, axis=0)
        tl.store(prefix_ptr + offsets, prefix.to(prefix_ptr.dtype.element_ty), mask=mask)
        before += tl.sum(x, axis=0)


@triton.jit
def _count_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    counts = tl.zeros((256,), tl.int32)
    for start in range(0, m, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < m
        keys = tl.load(keys_ptr + offsets, mask=mask, other=0).to(tl.int32)
        counts += tl.histogram(keys, 256, mask=mask)
    tl.store(counts_ptr + tl.arange(0, 256), counts)


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    _scan_kernel[(1,)](x, prefix, n, TILE=4096)
    _count_kernel[(1,)](keys, counts, m, BLOCK=4096)
