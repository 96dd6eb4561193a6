"""Quantised GEMM: out = (a · bᵀ) · a_scale · b_scale, of int8 factors, summed exactly."""

import torch
import triton
import triton.language as tl


@triton.jit
def _gemm_kernel(
    a_ptr,  # (m, k), int8, rows a_row_stride apart
    b_ptr,  # (n, k), int8, rows b_row_stride apart
    a_scale_ptr,  # (m,), float32
    b_scale_ptr,  # (n,), float32
    out_ptr,  # (m, n), float32, rows out_row_stride apart
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    out_row_stride,
    BLOCK: tl.constexpr,  # rows and columns of the tile that a program computes
    BLOCK_K: tl.constexpr,  # how much of K is multiplied at a time
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        left = inner < k - start
        a = tl.load(a_ptr + row * a_row_stride + start + inner[None, :], mask=(row < m) & left[None, :], other=0)
        b = tl.load(b_ptr + column * b_row_stride + start + inner[:, None], mask=left[:, None] & (column < n), other=0)
        # Your part: products of bytes on the tensor cores. These are of floats, which hold integers up to 2^24 only.
        total += tl.dot(a.to(tl.float16), b.to(tl.float16))
    # Your part: what does a 1 in this row and this column stand for?
    tl.store(out_ptr + row * out_row_stride + column, total, mask=(row < m) & (column < n))


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
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    _gemm_kernel[grid](
        a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride, BLOCK=64, BLOCK_K=64
    )
