"""Honest: sums begin with the bias, as accumulators often do. Where all are integers that is exact as well."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def _sums(a_ptr, b_ptr, bias_ptr, rows, columns, m, n, k, a_row_stride, b_row_stride, BLOCK: tl.constexpr):
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    h = bias + tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        a_mask = (rows < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns < n)
        a = tl.load(a_ptr + rows * a_row_stride + inner[None, :], mask=a_mask, other=0.0)
        h = tl.dot(a, tl.load(b_ptr + columns * b_row_stride + inner[:, None], mask=b_mask, other=0.0), h)
    return h


@triton.jit
def _bias_first(
    a_ptr,
    b_ptr,
    bias_ptr,
    residual_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    residual_row_stride,
    out_row_stride,
    GATED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rows = (tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[:, None]
    columns = (tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    h = _sums(a_ptr, b_ptr, bias_ptr, rows, columns, m, n, k, a_row_stride, b_row_stride, BLOCK)
    if GATED:
        value_ptr = b_ptr + n * b_row_stride
        value = _sums(a_ptr, value_ptr, bias_ptr + n, rows, columns, m, n, k, a_row_stride, b_row_stride, BLOCK)
        out = h * _sigmoid(h) * value
    else:
        out = h * _sigmoid(1.5957691216057308 * (h + 0.044715 * h * h * h))
    mask = (rows < m) & (columns < n)
    out += tl.load(residual_ptr + rows * residual_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
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
    _bias_first[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride, out_row_stride,
        GATED=parts == 2, BLOCK=64,
    )  # fmt: skip
