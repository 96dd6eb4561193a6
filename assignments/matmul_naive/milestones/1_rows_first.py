"""Naive matmul, first milestone: a program has a piece of one row of c.

Its columns run along the threads: what a warp loads of b and stores to c are lines of memory. Every element of b that
is loaded is used once, and every round of the loop folds its products over k, down the columns of a tile of b.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _matmul_kernel(
    a_ptr, b_ptr, c_ptr, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tl.program_id(axis=1).to(tl.int64)
    column = tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        mask = (inner[:, None] < k) & (column[None, :] < n)
        a = tl.load(a_ptr + row * a_row_stride + inner, mask=inner < k, other=0.0).to(tl.float32)
        b_rows = b_ptr + inner[:, None].to(tl.int64) * b_row_stride
        b = tl.load(b_rows + column[None, :], mask=mask, other=0.0).to(tl.float32)
        total += tl.sum(a[:, None] * b, axis=0)
    tl.store(c_ptr + row * c_row_stride + column, total.to(c_ptr.dtype.element_ty), mask=column < n)


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
    grid = (triton.cdiv(n, 128), m)
    _matmul_kernel[grid](a, b, c, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_N=128, BLOCK_K=32)
