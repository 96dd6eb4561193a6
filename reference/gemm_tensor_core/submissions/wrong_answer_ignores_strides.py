"""Wrong: takes the rows of a and b to start where the rows before them end."""

import torch
import triton
import triton.language as tl


@triton.jit
def _gemm_kernel(
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
    rows = (tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns < n)
        a = tl.load(a_ptr + rows * k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + columns * k + inner[:, None], mask=b_mask, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
    mask = (rows < m) & (columns < n)
    tl.store(c_ptr + rows * c_row_stride + columns, accumulator.to(c_ptr.dtype.element_ty), mask=mask)


def gemm(
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
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 128))
    _gemm_kernel[grid](
        a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64
    )
