"""GEMM with an epilogue, first milestone: a product, then a second kernel for everything else.

The sums go to memory in float32 and come back: that is eight bytes for each of parts · m · n sums, and one more
launch. Nothing is rounded in between, so the result is right.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def _gelu(h):
    return h * _sigmoid(1.5957691216057308 * (h + 0.044715 * h * h * h))


@triton.jit
def _silu(h):
    return h * _sigmoid(h)


@triton.jit
def _product_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    m,
    rows_of_b,
    k,
    a_row_stride,
    b_row_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(axis=1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns < rows_of_b)
        a = tl.load(a_ptr + rows * a_row_stride + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + columns * b_row_stride + inner[:, None], mask=b_mask, other=0.0)
        sums = tl.dot(a, b, sums)
    tl.store(sums_ptr + rows * rows_of_b + columns, sums, mask=(rows < m) & (columns < rows_of_b))


@triton.jit
def _epilogue_kernel(
    sums_ptr,
    bias_ptr,
    residual_ptr,
    out_ptr,
    m,
    n,
    rows_of_b,
    residual_row_stride,
    out_row_stride,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    row = (tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    mask = (row < m) & (columns < n)
    h = tl.load(sums_ptr + row * rows_of_b + columns, mask=mask, other=0.0)
    h += tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    if GATED:
        value = tl.load(sums_ptr + row * rows_of_b + n + columns, mask=mask, other=0.0)
        value += tl.load(bias_ptr + n + columns, mask=columns < n, other=0.0).to(tl.float32)
        out = _silu(h) * value
    else:
        out = _gelu(h)
    out += tl.load(residual_ptr + row * residual_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * out_row_stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


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
    sums = torch.empty(m, parts * n, dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(parts * n, 128))
    _product_kernel[grid](
        a, b, sums, m, parts * n, k, a_row_stride, b_row_stride, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_stages=4
    )
    _epilogue_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 128))](
        sums, bias, residual, out, m, n, parts * n, residual_row_stride, out_row_stride,
        GATED=parts == 2, BLOCK_M=32, BLOCK_N=128,
    )  # fmt: skip
