"""GEMM, fourth milestone: the same tiles, moved by descriptors.

A descriptor tells the hardware (TMA) where a matrix is, and how large: one thread then asks for a whole tile, and what
is outside the matrix comes as zeros. No pointers, masks or registers for what is in flight: the loop has only products
left, and there is room for a fourth stage. Both factors are loaded as they lie, and `.T` is free for wgmma.

A descriptor needs rows that begin at multiples of 16 bytes; other matrices are loaded by pointers.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _gemm_kernel(
    a,
    b,
    c_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    c_row_stride,
    DESCRIBED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    across = GROUP_M * tl.cdiv(n, BLOCK_N)
    group, within = tl.program_id(axis=0) // across, tl.program_id(axis=0) % across
    height = tl.minimum(tl.cdiv(m, BLOCK_M) - group * GROUP_M, GROUP_M)
    first_row = (group * GROUP_M + within % height) * BLOCK_M
    first_column = within // height * BLOCK_N
    rows, columns = first_row + tl.arange(0, BLOCK_M)[:, None], first_column + tl.arange(0, BLOCK_N)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        if DESCRIBED:
            left = a.load([first_row, start])
            right = b.load([first_column, start])
        else:
            inner = start + tl.arange(0, BLOCK_K)[None, :]
            a_tile = a + rows.to(tl.int64) * a_row_stride + inner
            b_tile = b + columns[:, None].to(tl.int64) * b_row_stride + inner
            left = tl.load(a_tile, mask=(rows < m) & (inner < k), other=0.0)
            right = tl.load(b_tile, mask=(columns[:, None] < n) & (inner < k), other=0.0)
        accumulator = tl.dot(left, right.T, accumulator)
    c_tile = c_ptr + rows.to(tl.int64) * c_row_stride + columns[None, :]
    tl.store(c_tile, accumulator.to(c_ptr.dtype.element_ty), mask=(rows < m) & (columns[None, :] < n))


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
    described = all(_has_descriptor(matrix) for matrix in (a, b))
    left = TensorDescriptor(a, [m, k], [a_row_stride, 1], [128, 64]) if described else a
    right = TensorDescriptor(b, [n, k], [b_row_stride, 1], [256, 64]) if described else b
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 256),)
    _gemm_kernel[grid](
        left, right, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, DESCRIBED=described,
        BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=16, num_warps=8, num_stages=4 if described else 3,
    )  # fmt: skip


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.stride(0) * matrix.element_size() % 16 == 0
