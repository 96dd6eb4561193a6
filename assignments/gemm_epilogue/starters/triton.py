"""GEMM with an epilogue: out = gelu(a · b[0]ᵀ + bias[0]) + residual, or silu(…[0]) · (…[1]) + residual with two parts."""

import torch
import triton
import triton.language as tl


@triton.jit
def _gemm_epilogue_kernel(
    a_ptr,  # left factor, m × k
    b_ptr,  # right factors transposed, parts × n × k
    bias_ptr,  # parts × n
    residual_ptr,  # m × n
    out_ptr,  # m × n
    m,
    n,
    k,
    a_row_stride,  # elements from one row to the next
    b_row_stride,  # part 1 begins n of these behind part 0
    residual_row_stride,
    out_row_stride,
    BLOCK_M: tl.constexpr,  # rows of the tile of out that one program computes
    BLOCK_N: tl.constexpr,  # columns of that tile
    BLOCK_K: tl.constexpr,  # how much of K is multiplied at once
):
    rows = (tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns < n)
        a = tl.load(a_ptr + rows * a_row_stride + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + columns * b_row_stride + inner[:, None], mask=b_mask, other=0.0)
        sums = tl.dot(a, b, sums)

    # Your part: here the sums of a tile are complete, and in registers. What is missing before they are rounded? And with two
    # parts, which other sums does this program need?
    out = sums + tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)

    mask = (rows < m) & (columns < n)
    tl.store(out_ptr + rows * out_row_stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


def gemm_epilogue(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    parts: int,
    a_row_stride: int,
    b_row_stride: int,
    residual_row_stride: int,
    out_row_stride: int,
) -> None:
    # The judge calls this function. It writes its answer into `out`; what it returns is ignored.
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 128))
    _gemm_epilogue_kernel[grid](
        a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride, out_row_stride,
        BLOCK_M=64, BLOCK_N=128, BLOCK_K=64,
    )  # fmt: skip
