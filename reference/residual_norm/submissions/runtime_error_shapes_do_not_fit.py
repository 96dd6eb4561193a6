"""Fails when called: blocks of two sizes meet in one expression."""

import torch
import triton
import triton.language as tl


@triton.jit
def _norm_kernel(
    x_ptr, r_ptr, weight_ptr, s_ptr, out_ptr, cols, x_stride, r_stride, s_stride, out_stride, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * r_stride + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(s_ptr + row * s_stride + columns, (x + r).to(s_ptr.dtype.element_ty), mask=mask)
    s = (x + r).to(s_ptr.dtype.element_ty).to(tl.float32)
    root = tl.sqrt(tl.sum(s * s, axis=0) / cols + eps)
    wide = tl.arange(0, 2 * BLOCK_SIZE)
    weight = tl.load(weight_ptr + wide, mask=wide < cols, other=0.0).to(tl.float32)
    out = s / root * weight
    tl.store(out_ptr + row * out_stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


def residual_norm(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    s: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    r_row_stride: int,
    s_row_stride: int,
    out_row_stride: int,
    eps: float,
) -> None:
    strides = (x_row_stride, r_row_stride, s_row_stride, out_row_stride)
    block = triton.next_power_of_2(cols)
    _norm_kernel[(rows,)](x, r, weight, s, out, cols, *strides, eps, BLOCK_SIZE=block)
