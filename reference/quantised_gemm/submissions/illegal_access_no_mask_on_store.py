"""Wrong: whole tiles are stored, also beyond the last row and column."""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(
    a_ptr,
    b_ptr,
    a_scale_ptr,
    b_scale_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    out_row_stride,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inner = tl.arange(0, BLOCK_K)
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    for start in range(0, k, BLOCK_K):
        left = inner < k - start
        a = tl.load(a_ptr + row * a_row_stride + start + inner[None, :], mask=(row < m) & left[None, :], other=0)
        b = tl.load(b_ptr + column * b_row_stride + start + inner[:, None], mask=left[:, None] & (column < n), other=0)
        sums = tl.dot(a, b, sums, out_dtype=tl.int32)
    a_scale = tl.load(a_scale_ptr + row, mask=row < m, other=0.0)
    b_scale = tl.load(b_scale_ptr + column, mask=column < n, other=0.0)
    scaled = sums.to(tl.float32) * a_scale * b_scale
    tl.store(out_ptr + row * out_row_stride + column, scaled)


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
    _kernel[grid](
        a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride, BLOCK=64, BLOCK_K=64
    )
