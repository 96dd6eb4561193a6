"""LayerNorm, first milestone: a kernel for the means, one for the deviations, one for the result.

Between kernels everything goes through memory, and x is read three times.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _mean_kernel(x_ptr, mean_ptr, cols, x_row_stride, center, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    total = 0.0
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        total += tl.sum(tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=0.0).to(tl.float32))
    tl.store(mean_ptr + row, total / cols * center)


@triton.jit
def _scale_kernel(x_ptr, mean_ptr, scale_ptr, cols, x_row_stride, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    mean = tl.load(mean_ptr + row)
    total = 0.0
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=0.0).to(tl.float32)
        rest = tl.where(columns < cols, x - mean, 0.0)
        total += tl.sum(rest * rest)
    tl.store(scale_ptr + row, tl.rsqrt(total / cols + eps))


@triton.jit
def _apply_kernel(
    x_ptr,
    mean_ptr,
    scale_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    cols,
    x_row_stride,
    out_row_stride,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(axis=0)
    mean = tl.load(mean_ptr + row)
    scale = tl.load(scale_ptr + row)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        mask = columns < cols
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
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
    mean = torch.empty(rows, dtype=torch.float32, device=x.device)
    scale = torch.empty(rows, dtype=torch.float32, device=x.device)
    block = 1024
    _mean_kernel[(rows,)](x, mean, cols, x_row_stride, center, BLOCK_SIZE=block)
    _scale_kernel[(rows,)](x, mean, scale, cols, x_row_stride, eps, BLOCK_SIZE=block)
    _apply_kernel[(rows,)](x, mean, scale, weight, bias, out, cols, x_row_stride, out_row_stride, BLOCK_SIZE=block)
