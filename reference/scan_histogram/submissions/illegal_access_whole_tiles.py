"""Illegal: stores whole tiles, also beyond the end."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scan_kernel(x_ptr, prefix_ptr, n, TILE: tl.constexpr):
    before = 0.0
    for start in range(0, n, TILE):
        offsets = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        tl.store(prefix_ptr + offsets, (before + tl.cumsum(x, axis=0)).to(prefix_ptr.dtype.element_ty))
        before += tl.sum(x, axis=0)


@triton.jit
def _count_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    keys = tl.load(keys_ptr + offsets, mask=offsets < m, other=0).to(tl.int32)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), tl.histogram(keys, 256, mask=offsets < m))


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    _scan_kernel[(1,)](x, prefix, n, TILE=512)
    counts.zero_()
    _count_kernel[(triton.cdiv(m, 65536),)](keys, counts, m, BLOCK=65536)
