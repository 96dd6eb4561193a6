"""Running sums in three kernels, and counts of keys by atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, TILE: tl.constexpr):
    offsets = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def before_kernel(sums_ptr, before_ptr, count, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + lanes, mask=lanes < count, other=0.0)
    tl.store(before_ptr + lanes, tl.cumsum(sums, axis=0) - sums, mask=lanes < count)


@triton.jit
def scan_kernel(x_ptr, before_ptr, prefix_ptr, n, TILE: tl.constexpr):
    offsets = tl.program_id(0) * TILE + tl.arange(0, TILE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    prefix = tl.cumsum(x, axis=0) + tl.load(before_ptr + tl.program_id(0))
    tl.store(prefix_ptr + offsets, prefix.to(prefix_ptr.dtype.element_ty), mask=mask)


@triton.jit
def count_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < m
    keys = tl.load(keys_ptr + offsets, mask=mask, other=0).to(tl.int32)
    counts = tl.histogram(keys, 256, mask=mask)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), counts)


def scan_histogram(x, keys, prefix, counts, n, m):
    tiles = triton.cdiv(n, 1024)
    sums = torch.empty(tiles, dtype=torch.float32, device=x.device)
    before = torch.empty(tiles, dtype=torch.float32, device=x.device)
    sums_kernel[(tiles,)](x, sums, n, TILE=1024)
    before_kernel[(1,)](sums, before, tiles, BLOCK=triton.next_power_of_2(tiles))
    scan_kernel[(tiles,)](x, before, prefix, n, TILE=1024)
    counts.zero_()
    count_kernel[(triton.cdiv(m, 4096),)](keys, counts, m, BLOCK=4096)
