"""GEMM, third milestone: tiles of 128 × 256, handed out in groups of eight rows of tiles.

The largest tile whose sums fit the registers of two warp groups: 128 of each thread's. Programs that run together share
columns of tiles, and find their slices in L2. Offsets have 64 bits where a tile starts and 32 within it; pointers walk.
"""

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
    GROUP_M: tl.constexpr,
):
    across = GROUP_M * tl.cdiv(n, BLOCK_N)
    group, within = tl.program_id(axis=0) // across, tl.program_id(axis=0) % across
    height = tl.minimum(tl.cdiv(m, BLOCK_M) - group * GROUP_M, GROUP_M)
    first_row = (group * GROUP_M + within % height) * BLOCK_M
    first_column = within // height * BLOCK_N
    row, column = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    rows, columns = m - first_row, n - first_column
    a_tile = a_ptr + first_row.to(tl.int64) * a_row_stride + row * a_row_stride + inner[None, :]
    b_tile = b_ptr + first_column.to(tl.int64) * b_row_stride + column * b_row_stride + inner[:, None]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_tile, mask=(row < rows) & (inner[None, :] < k - start), other=0.0)
        b = tl.load(b_tile, mask=(inner[:, None] < k - start) & (column < columns), other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_tile += BLOCK_K
        b_tile += BLOCK_K
    c_tile = c_ptr + first_row.to(tl.int64) * c_row_stride + first_column + row * c_row_stride + column
    tl.store(c_tile, accumulator.to(c_ptr.dtype.element_ty), mask=(row < rows) & (column < columns))


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
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 256),)
    _gemm_kernel[grid](
        a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride,
        BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )  # fmt: skip
