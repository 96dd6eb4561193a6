"""Residual addition and RMSNorm in one kernel, the staff kernel.

    s[i, j] = x[i, j] + r[i, j],    out[i, j] = s[i, j] / sqrt(mean of s[i, :]² + eps) · weight[j]

`s` is rounded to its type once, and the norm takes what was stored. A row that fits a program's registers is read once
from each input and written once to each output: 4·rows·cols·e bytes, where two kernels move 5. Longer rows go twice
over their columns; the second pass reads back the sum that the first one stored.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _short_kernel(
    x_ptr,
    r_ptr,
    weight_ptr,
    s_ptr,
    out_ptr,
    rows,
    cols,
    x_row_stride,
    r_row_stride,
    s_row_stride,
    out_row_stride,
    eps,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLS)[None, :]
    inside = column < cols
    mask = (row < rows) & inside
    x = tl.load(x_ptr + row * x_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * r_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    stored = (x + r).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + row * s_row_stride + column, stored, mask=mask)
    s = stored.to(tl.float32)
    mean_square = tl.sum(s * s, axis=1, keep_dims=True) / cols
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    out = s * tl.rsqrt(mean_square + eps) * weight
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _long_kernel(
    x_ptr,
    r_ptr,
    weight_ptr,
    s_ptr,
    out_ptr,
    cols,
    x_row_stride,
    r_row_stride,
    s_row_stride,
    out_row_stride,
    eps,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * x_row_stride
    r_ptr += row * r_row_stride
    s_ptr += row * s_row_stride
    out_ptr += row * out_row_stride
    squares = tl.zeros((BLOCK_COLS,), tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        inside = column < cols
        x = tl.load(x_ptr + column, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + column, mask=inside, other=0.0).to(tl.float32)
        stored = (x + r).to(s_ptr.dtype.element_ty)
        tl.store(s_ptr + column, stored, mask=inside)
        s = stored.to(tl.float32)
        squares += s * s
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    # Another thread of the program may read what this one stored.
    tl.debug_barrier()
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        inside = column < cols
        s = tl.load(s_ptr + column, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
        out = s * scale * weight
        tl.store(out_ptr + column, out.to(out_ptr.dtype.element_ty), mask=inside)


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
    tensors = (x, r, weight, s, out)
    strides = (x_row_stride, r_row_stride, s_row_stride, out_row_stride)
    if cols > 16384:
        _long_kernel[(rows,)](*tensors, cols, *strides, eps, BLOCK_COLS=8192, num_warps=16)
        return
    block_cols = triton.next_power_of_2(cols)
    # A program wants about 4096 elements on a GPU; the interpreter pays per program, so there it takes many more.
    block_rows = max(1, (4096 if x.is_cuda else 65536) // block_cols)
    warps = min(16, max(4, block_rows * block_cols // 512))
    _short_kernel[(triton.cdiv(rows, block_rows),)](
        *tensors, rows, cols, *strides, eps, BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, num_warps=warps
    )
