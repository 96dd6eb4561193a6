"""Honest: tiles in the order of a ticket, each waiting for its neighbour's prefix; counts by atomics of whole histograms."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scan_kernel(x_ptr, prefix_ptr, ends_ptr, flags_ptr, ticket_ptr, n, TILE: tl.constexpr):
    tile = tl.atomic_add(ticket_ptr, 1)
    offsets = tile * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    total = tl.sum(x, axis=0)
    # The ticket orders tiles by when they begin: the one before has begun, so waiting ends.
    while tl.atomic_add(flags_ptr + tile, 0, sem="acquire") == 0:
        pass
    before = tl.load(ends_ptr + tile, volatile=True)
    tl.store(ends_ptr + tile + 1, before + total)
    tl.atomic_xchg(flags_ptr + tile + 1, 1, sem="release")
    prefix = before + tl.cumsum(x, axis=0)
    tl.store(prefix_ptr + offsets, prefix.to(prefix_ptr.dtype.element_ty), mask=offsets < n)


@triton.jit
def _count_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    keys = tl.load(keys_ptr + offsets, mask=offsets < m, other=0).to(tl.int32)
    counts = tl.histogram(keys, 256, mask=offsets < m)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), counts, mask=counts > 0)


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    tiles = triton.cdiv(n, 16384)
    ends = torch.zeros(tiles + 1, dtype=torch.float32, device=x.device)
    flags = torch.zeros(tiles + 1, dtype=torch.int32, device=x.device)
    flags[:1].fill_(1)
    ticket = torch.zeros(1, dtype=torch.int32, device=x.device)
    _scan_kernel[(tiles,)](x, prefix, ends, flags, ticket, n, TILE=16384)
    counts.zero_()
    _count_kernel[(triton.cdiv(m, 65536),)](keys, counts, m, BLOCK=65536)
