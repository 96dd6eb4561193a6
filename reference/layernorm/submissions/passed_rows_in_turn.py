"""Honest: a fixed number of programs that take rows in turn, and three passes over blocks of 2048."""

import torch
import triton
import triton.language as tl


@triton.jit
def _layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, eps, center, BLOCK_SIZE: tl.constexpr
):
    for row in range(tl.program_id(axis=0), rows, tl.num_programs(axis=0)):
        x_row = x_ptr + row * x_row_stride
        out_row = out_ptr + row * out_row_stride
        total = tl.zeros((BLOCK_SIZE,), tl.float32)
        for start in range(0, cols, BLOCK_SIZE):
            columns = start + tl.arange(0, BLOCK_SIZE)
            total += tl.load(x_row + columns, mask=columns < cols, other=0.0).to(tl.float32)
        mean = tl.sum(total, axis=0) / cols * center
        squares = tl.zeros((BLOCK_SIZE,), tl.float32)
        for start in range(0, cols, BLOCK_SIZE):
            columns = start + tl.arange(0, BLOCK_SIZE)
            x = tl.load(x_row + columns, mask=columns < cols, other=0.0).to(tl.float32)
            rest = tl.where(columns < cols, x - mean, 0.0)
            squares += rest * rest
        scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
        for start in range(0, cols, BLOCK_SIZE):
            columns = start + tl.arange(0, BLOCK_SIZE)
            mask = columns < cols
            x = tl.load(x_row + columns, mask=mask, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
            bias = tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
            out = (x - mean) * scale * weight + bias
            tl.store(out_row + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


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
    grid = (min(rows, 16),)
    _layernorm_kernel[grid](
        x, weight, bias, out, rows, cols, x_row_stride, out_row_stride, eps, center, BLOCK_SIZE=2048
    )
