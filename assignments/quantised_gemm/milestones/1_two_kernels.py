"""Quantised GEMM, first milestone: the sums go to memory as int32, and a second kernel scales them."""

import torch
import triton
import triton.language as tl


@triton.jit
def _product_kernel(
    a_ptr, b_ptr, sums_ptr, m, n, k, a_row_stride, b_row_stride, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    for start in range(0, k, BLOCK_K):
        left = inner < k - start
        a = tl.load(a_ptr + row * a_row_stride + start + inner[None, :], mask=(row < m) & left[None, :], other=0)
        b = tl.load(b_ptr + column * b_row_stride + start + inner[:, None], mask=left[:, None] & (column < n), other=0)
        sums = tl.dot(a, b, sums, out_dtype=tl.int32)
    tl.store(sums_ptr + row * n + column, sums, mask=(row < m) & (column < n))


@triton.jit
def _scale_kernel(sums_ptr, a_scale_ptr, b_scale_ptr, out_ptr, n, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    column = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < n
    sums = tl.load(sums_ptr + row * n + column, mask=mask)
    scaled = sums.to(tl.float32) * tl.load(a_scale_ptr + row) * tl.load(b_scale_ptr + column, mask=mask)
    tl.store(out_ptr + row * out_row_stride + column, scaled, mask=mask)


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
    sums = torch.empty((m, n), dtype=torch.int32, device=out.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    _product_kernel[grid](a, b, sums, m, n, k, a_row_stride, b_row_stride, BLOCK=64, BLOCK_K=64, num_stages=1)
    _scale_kernel[(m, triton.cdiv(n, 1024))](sums, a_scale, b_scale, out, n, out_row_stride, BLOCK=1024)
