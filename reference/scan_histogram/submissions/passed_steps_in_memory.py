"""Honest: Hillis and Steele's scan over tiles' sums in memory, and an atomic addition to memory for every key."""

import torch
import triton
import triton.language as tl


@triton.jit
def _tiles_kernel(x_ptr, prefix_ptr, sums_ptr, n, TILE: tl.constexpr):
    offsets = tl.program_id(axis=0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(prefix_ptr + offsets, tl.cumsum(x, axis=0), mask=offsets < n)
    tl.store(sums_ptr + tl.program_id(axis=0), tl.sum(x, axis=0))


@triton.jit
def _step_kernel(from_ptr, to_ptr, tiles, step, TILE: tl.constexpr):
    offsets = tl.program_id(axis=0) * TILE + tl.arange(0, TILE)
    mask = offsets < tiles
    own = tl.load(from_ptr + offsets, mask=mask, other=0.0)
    left = tl.load(from_ptr + offsets - step, mask=mask & (offsets >= step), other=0.0)
    tl.store(to_ptr + offsets, own + left, mask=mask)


@triton.jit
def _add_kernel(local_ptr, sums_ptr, prefix_ptr, n, TILE: tl.constexpr):
    tile = tl.program_id(axis=0)
    offsets = tile * TILE + tl.arange(0, TILE)
    before = tl.load(sums_ptr + tile - 1, mask=tile > 0, other=0.0)
    prefix = before + tl.load(local_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(prefix_ptr + offsets, prefix.to(prefix_ptr.dtype.element_ty), mask=offsets < n)


@triton.jit
def _count_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    keys = tl.load(keys_ptr + offsets, mask=offsets < m, other=0).to(tl.int32)
    tl.atomic_add(counts_ptr + keys, 1, mask=offsets < m)


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    tiles, step = triton.cdiv(n, 8192), 1
    local = torch.empty(n, dtype=torch.float32, device=x.device)
    sums, others = torch.empty(2, tiles, dtype=torch.float32, device=x.device).unbind()
    _tiles_kernel[(tiles,)](x, local, sums, n, TILE=8192)
    while step < tiles:
        _step_kernel[(triton.cdiv(tiles, 1024),)](sums, others, tiles, step, TILE=1024)
        sums, others, step = others, sums, 2 * step
    _add_kernel[(tiles,)](local, sums, prefix, n, TILE=8192)
    counts.zero_()
    _count_kernel[(triton.cdiv(m, 16384),)](keys, counts, m, BLOCK=16384)
