"""LayerNorm, second milestone: one kernel, which still reads the row three times.

Mean and deviation stay in registers, and two of three launches are gone. The second and third read come from the L2
cache at best: cheaper than the first, and not free.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, cols, x_row_stride, out_row_stride, eps, center, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(axis=0)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    total = 0.0
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        total += tl.sum(tl.load(x_ptr + columns, mask=columns < cols, other=0.0).to(tl.float32))
    mean = total / cols * center
    squares = 0.0
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + columns, mask=columns < cols, other=0.0).to(tl.float32)
        rest = tl.where(columns < cols, x - mean, 0.0)
        squares += tl.sum(rest * rest)
    scale = tl.rsqrt(squares / cols + eps)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        mask = columns < cols
        x = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


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
    _layernorm_kernel[(rows,)](x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center, BLOCK_SIZE=1024)
