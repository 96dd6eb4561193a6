"""Scan and histogram: running sums of n numbers, and how often each of 256 values occurs among m keys."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scan_kernel(
    x_ptr,  # the numbers
    prefix_ptr,  # the running sums
    n,  # how many numbers there are
    TILE: tl.constexpr,  # how many of them a program adds up
):
    offsets = tl.program_id(axis=0) * TILE + tl.arange(0, TILE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    # Your part: these are the running sums inside the tile. What came before the tile has to be added.
    prefix = tl.cumsum(x, axis=0)
    tl.store(prefix_ptr + offsets, prefix.to(prefix_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _count_kernel(
    keys_ptr,  # the values that are counted
    counts_ptr,  # one int32 for each of 256 values
    m,  # how many keys there are
    BLOCK: tl.constexpr,  # how many of them a program counts
):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < m
    keys = tl.load(keys_ptr + offsets, mask=mask, other=0).to(tl.int32)
    counts = tl.histogram(keys, 256, mask=mask)
    # Your part: every program has counts of its own keys, and all of them store to the same place.
    tl.store(counts_ptr + tl.arange(0, 256), counts)


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    _scan_kernel[(triton.cdiv(n, 1024),)](x, prefix, n, TILE=1024)
    _count_kernel[(triton.cdiv(m, 4096),)](keys, counts, m, BLOCK=4096)
