"""Matmul, first milestone: one row of c per program, nothing is used twice.

Each program loads its row of a once and all of b: m programs read b m times. There is no tile, so there is no reuse of
b, and no tensor core could help.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _matmul_kernel(
    a_ptr, b_ptr, c_ptr, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    row = tl.program_id(axis=0)
    columns = tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row * a_row_stride + inner, mask=inner < k, other=0.0)
        b_mask = (inner[:, None] < k) & (columns[None, :] < n)
        b = tl.load(b_ptr + inner[:, None] * b_row_stride + columns[None, :], mask=b_mask, other=0.0)
        total += tl.sum(a.to(tl.float32)[:, None] * b.to(tl.float32), axis=0)
    tl.store(c_ptr + row * c_row_stride + columns, total.to(c_ptr.dtype.element_ty), mask=columns < n)


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
    grid = (m, triton.cdiv(n, 128))
    _matmul_kernel[grid](a, b, c, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_N=128, BLOCK_K=256)
