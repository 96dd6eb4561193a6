"""Honest: by `tl.dot`, in tiles of 64 × 64."""

import torch
import triton
import triton.language as tl


@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    c_row_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = (tl.program_id(axis=1) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    column = (tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    a_column = a_ptr + row.to(tl.int64) * a_row_stride
    b_row = b_ptr + column
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_column + inner[None, :], mask=(row < m) & (inner[None, :] < k), other=0.0)
        b_mask = (inner[:, None] < k) & (column < n)
        b = tl.load(b_row + inner[:, None].to(tl.int64) * b_row_stride, mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    c_rows = c_ptr + row.to(tl.int64) * c_row_stride
    tl.store(c_rows + column, total.to(c_ptr.dtype.element_ty), mask=(row < m) & (column < n))


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    c_row_stride: int,
) -> None:
    block_m, block_n = 64, 64
    grid = (triton.cdiv(n, block_n), triton.cdiv(m, block_m))
    _matmul_kernel[grid](
        a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=32
    )
