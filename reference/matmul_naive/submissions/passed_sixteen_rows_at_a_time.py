"""Honest: blocks of 16 × 256, without unrolling."""

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
    UNROLL: tl.constexpr,
):
    row = (tl.program_id(axis=1) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    column = (tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    a_column = a_ptr + row.to(tl.int64) * a_row_stride
    b_row = b_ptr + column
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for inner in tl.range(0, k, loop_unroll_factor=UNROLL):
        a = tl.load(a_column + inner, mask=row < m, other=0.0).to(tl.float32)
        b = tl.load(b_row, mask=column < n, other=0.0).to(tl.float32)
        total += a * b
        b_row += b_row_stride
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
    block_m, block_n = 16, 256
    grid = (triton.cdiv(n, block_n), triton.cdiv(m, block_m))
    _matmul_kernel[grid](
        a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M=block_m, BLOCK_N=block_n, UNROLL=1
    )
