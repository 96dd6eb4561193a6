"""Fails when called: blocks of two sizes meet in one expression."""

import torch
import triton
import triton.language as tl


@triton.jit
def _layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, cols, x_row_stride, out_row_stride, eps, center, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(axis=0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < cols
    x = tl.load(x_ptr + row * x_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / cols * center
    rest = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(rest * rest, axis=0) / cols
    wide = tl.arange(0, 2 * BLOCK_SIZE)
    weight = tl.load(weight_ptr + wide, mask=wide < cols, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    out = rest / tl.sqrt(variance + eps) * weight + bias
    tl.store(out_ptr + row * out_row_stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


def layernorm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    out_row_stride: int,
    eps: float,
    center: int,
) -> None:
    _layernorm_kernel[(rows,)](
        x,
        weight,
        bias,
        out,
        cols,
        x_row_stride,
        out_row_stride,
        eps,
        center,
        BLOCK_SIZE=triton.next_power_of_2(cols),
    )
