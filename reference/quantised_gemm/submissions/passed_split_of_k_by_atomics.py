"""Right: programs add their share of K to int32 sums in memory, in any order: integers do not mind. Then scales."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sum_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SLICES: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    for part in range(SLICES):
        inner = (tl.program_id(axis=2) * SLICES + part) * BLOCK_K + tl.arange(0, BLOCK_K)
        left = inner < k
        a = tl.load(a_ptr + row * a_row_stride + inner[None, :], mask=(row < m) & left[None, :], other=0)
        b = tl.load(b_ptr + column * b_row_stride + inner[:, None], mask=left[:, None] & (column < n), other=0)
        sums = tl.dot(a, b, sums, out_dtype=tl.int32)
    tl.atomic_add(sums_ptr + row * n + column, sums, mask=(row < m) & (column < n))


@triton.jit
def _scale_kernel(sums_ptr, a_scale_ptr, b_scale_ptr, out_ptr, m, n, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < m) & (column < n)
    scale = tl.load(a_scale_ptr + row, mask=row < m) * tl.load(b_scale_ptr + column, mask=column < n)
    sums = tl.load(sums_ptr + row * n + column, mask=mask)
    tl.store(out_ptr + row * out_row_stride + column, sums.to(tl.float32) * scale, mask=mask)


def quantised_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    out_row_stride: int,
) -> None:
    sums = torch.zeros((m, n), dtype=torch.int32, device=out.device)
    tiles = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    _sum_kernel[(*tiles, triton.cdiv(k, 512))](
        a, b, sums, m, n, k, a_row_stride, b_row_stride, BLOCK=32, BLOCK_K=128, SLICES=4
    )
    _scale_kernel[tiles](sums, a_scale, b_scale, out, m, n, out_row_stride, BLOCK=32)
