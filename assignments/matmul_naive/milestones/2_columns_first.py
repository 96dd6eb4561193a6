"""Naive matmul, second milestone: a program has a piece of one column of c.

What it loads of b lies in as many rows as it has elements, and so does what it stores: of each sector of 32 bytes it
uses four. Every element of a that is loaded is used once, and every round of the loop folds its products over k, along
the rows of a tile of a.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = (tl.program_id(axis=1) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    column = tl.program_id(axis=0)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        mask = (row[:, None] < m) & (inner[None, :] < k)
        a = tl.load(a_ptr + row[:, None] * a_row_stride + inner[None, :], mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + inner.to(tl.int64) * b_row_stride + column, mask=inner < k, other=0.0).to(tl.float32)
        total += tl.sum(a * b[None, :], axis=1)
    tl.store(c_ptr + row * c_row_stride + column, total.to(c_ptr.dtype.element_ty), mask=row < m)


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
    grid = (n, triton.cdiv(m, 64))
    _matmul_kernel[grid](a, b, c, m, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M=64, BLOCK_K=32)
