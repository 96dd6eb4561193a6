"""Residual addition and norm, first milestone: a kernel for the sum, one for the roots, one for the result.

Between kernels everything goes through memory. The sum is written once and read twice: six crossings of the bus.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, r_ptr, s_ptr, cols, x_row_stride, r_row_stride, s_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        mask = columns < cols
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=mask).to(tl.float32)
        r = tl.load(r_ptr + row * r_row_stride + columns, mask=mask).to(tl.float32)
        tl.store(s_ptr + row * s_row_stride + columns, (x + r).to(s_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _scale_kernel(s_ptr, scale_ptr, cols, s_row_stride, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    squares = 0.0
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        s = tl.load(s_ptr + row * s_row_stride + columns, mask=columns < cols, other=0.0).to(tl.float32)
        squares += tl.sum(s * s)
    tl.store(scale_ptr + row, tl.rsqrt(squares / cols + eps))


@triton.jit
def _apply_kernel(s_ptr, scale_ptr, weight_ptr, out_ptr, cols, s_row_stride, out_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    scale = tl.load(scale_ptr + row)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        mask = columns < cols
        s = tl.load(s_ptr + row * s_row_stride + columns, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
        out = s * scale * weight
        tl.store(out_ptr + row * out_row_stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


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
    scale = torch.empty(rows, dtype=torch.float32, device=x.device)
    block = 4096
    _add_kernel[(rows,)](x, r, s, cols, x_row_stride, r_row_stride, s_row_stride, BLOCK_SIZE=block)
    _scale_kernel[(rows,)](s, scale, cols, s_row_stride, eps, BLOCK_SIZE=block)
    _apply_kernel[(rows,)](s, scale, weight, out, cols, s_row_stride, out_row_stride, BLOCK_SIZE=block)
