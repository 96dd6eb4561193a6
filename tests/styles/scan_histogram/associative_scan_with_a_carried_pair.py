"""associative_scan with an own combine function; one program scans the sums of the tiles and carries a number."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _tile_sums_kernel(x_ptr, sums_ptr, n, TILE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
    tl.store(sums_ptr + pid, tl.reduce(x, 0, _add))


@triton.jit
def _carry_kernel(sums_ptr, before_ptr, tiles, BLOCK: tl.constexpr):
    # One program: inclusive scan of a block of sums, the carry added, stored as what stands before each tile.
    carry = 0.0
    for start in range(0, tiles, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        inside = offs < tiles
        own = tl.load(sums_ptr + offs, mask=inside, other=0.0)
        upto = tl.associative_scan(own, 0, _add)
        tl.store(before_ptr + 1 + offs, carry + upto, mask=inside)
        carry += tl.sum(own, axis=0)
    tl.store(before_ptr, 0.0)


@triton.jit
def _scan_kernel(x_ptr, before_ptr, prefix_ptr, n, TILE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * TILE + tl.arange(0, TILE)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
    upto = tl.associative_scan(x, 0, _add) + tl.load(before_ptr + pid)
    tl.store(prefix_ptr + offs, upto.to(prefix_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _bins_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    mine = tl.zeros((256,), dtype=tl.int32)
    for start in range(pid * BLOCK, m, step):
        offs = start + tl.arange(0, BLOCK)
        inside = offs < m
        keys = tl.load(keys_ptr + offs, mask=inside, other=0).to(tl.int32)
        mine += tl.histogram(keys, 256, mask=inside)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), mine)


def scan_histogram(x, keys, prefix, counts, n, m):
    TILE = 4096
    tiles = triton.cdiv(n, TILE)
    if tiles == 1:
        before = torch.zeros(1, dtype=torch.float32, device=x.device)
    else:
        sums = torch.empty(tiles, dtype=torch.float32, device=x.device)
        before = torch.empty(tiles + 1, dtype=torch.float32, device=x.device)
        _tile_sums_kernel[(tiles,)](x, sums, n, TILE=TILE)
        _carry_kernel[(1,)](sums, before, tiles, BLOCK=4096, num_warps=8)
    _scan_kernel[(tiles,)](x, before, prefix, n, TILE=TILE, num_warps=8)

    counts.zero_()
    BLOCK = 8192
    programs = min(triton.cdiv(m, BLOCK), 1056 if keys.is_cuda else 4)
    _bins_kernel[(programs,)](keys, counts, m, BLOCK=BLOCK, num_warps=8)
