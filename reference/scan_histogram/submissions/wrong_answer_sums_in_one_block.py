"""Wrong: three kernels, and the second has one block of 256 sums, which is enough up to 2^18 elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sums_kernel(x_ptr, sums_ptr, n, TILE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(axis=0), tl.sum(x, axis=0))


@triton.jit
def _before_kernel(sums_ptr, before_ptr, tiles):
    # One block for all tiles' sums: those from the 257th on are left as they are.
    offsets = tl.arange(0, 256)
    sums = tl.load(sums_ptr + offsets, mask=offsets < tiles, other=0.0)
    tl.store(before_ptr + offsets, tl.cumsum(sums, axis=0) - sums, mask=offsets < tiles)


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
    tiles = triton.cdiv(n, 1024)
    sums = torch.empty(tiles, dtype=torch.float32, device=x.device)
    before = torch.zeros(tiles, dtype=torch.float32, device=x.device)
    _sums_kernel[(tiles,)](x, sums, n, TILE=1024)
    _before_kernel[(1,)](sums, before, tiles)
    _scan_kernel[(tiles,)](x, before, prefix, n, TILE=1024)
    _clear_kernel[(1,)](counts)
    _count_kernel[(triton.cdiv(m, 16384),)](keys, counts, m, BLOCK=16384)
