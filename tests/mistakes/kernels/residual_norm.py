"""Residual addition and RMSNorm, one program a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def residual_norm_kernel(
    x_ptr, r_ptr, weight_ptr, s_ptr, out_ptr, cols, x_stride, r_stride, s_stride, out_stride, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * r_stride + columns, mask=mask, other=0.0).to(tl.float32)
    s = (x + r).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + row * s_stride + columns, s, mask=mask)
    s = s.to(tl.float32)
    mean_square = tl.sum(s * s, axis=0) / cols
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    out = s * tl.rsqrt(mean_square + eps) * weight
    tl.store(out_ptr + row * out_stride + columns, out, mask=mask)


def residual_norm(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride, s_row_stride, out_row_stride, eps):
    strides = (x_row_stride, r_row_stride, s_row_stride, out_row_stride)
    block = triton.next_power_of_2(cols)
    residual_norm_kernel[(rows,)](x, r, weight, s, out, cols, *strides, eps, BLOCK=block)
