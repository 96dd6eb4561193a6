"""Scan and histogram, second milestone: all programs at work; x is read twice, and every key goes to memory.

The tiles' sums are scanned between two passes over x: one that adds tiles up, and one that scans them, each from where
its predecessors end. Each key is an atomic addition to one of 256 words.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _sums_kernel(x_ptr, sums_ptr, n, TILE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(axis=0), tl.sum(x, axis=0))


@triton.jit
def _before_kernel(sums_ptr, before_ptr, tiles, TILE: tl.constexpr):
    before = 0.0
    for start in range(0, tiles, TILE):
        offsets = start + tl.arange(0, TILE)
        sums = tl.load(sums_ptr + offsets, mask=offsets < tiles, other=0.0)
        # What comes before a tile does not have the tile's own sum in it.
        tl.store(before_ptr + offsets, before + tl.cumsum(sums, axis=0) - sums, mask=offsets < tiles)
        before += tl.sum(sums, axis=0)


@triton.jit
def _scan_kernel(x_ptr, before_ptr, prefix_ptr, n, TILE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * TILE + tl.arange(0, TILE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    prefix = tl.load(before_ptr + tl.program_id(axis=0)) + tl.cumsum(x, axis=0)
    tl.store(prefix_ptr + offsets, prefix.to(prefix_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _clear_kernel(counts_ptr):
    tl.store(counts_ptr + tl.arange(0, 256), tl.zeros((256,), tl.int32))


@triton.jit
def _count_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < m
    keys = tl.load(keys_ptr + offsets, mask=mask, other=0).to(tl.int32)
    tl.atomic_add(counts_ptr + keys, 1, mask=mask, sem="relaxed")


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    tiles = triton.cdiv(n, 8192)
    sums = torch.empty(tiles, dtype=torch.float32, device=x.device)
    before = torch.empty(tiles, dtype=torch.float32, device=x.device)
    _sums_kernel[(tiles,)](x, sums, n, TILE=8192)
    _before_kernel[(1,)](sums, before, tiles, TILE=4096)
    _scan_kernel[(tiles,)](x, before, prefix, n, TILE=8192)
    _clear_kernel[(1,)](counts)
    _count_kernel[(triton.cdiv(m, 16384),)](keys, counts, m, BLOCK=16384)
