"""Transpose by tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < cols)[None, :]
    x = tl.load(x_ptr + row[:, None] * x_row_stride + column[None, :], mask=mask)
    tl.store(out_ptr + column[None, :] * out_row_stride + row[:, None], x, mask=mask)


def transpose(x, out, rows, cols, x_row_stride, out_row_stride):
    grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
    transpose_kernel[grid](x, out, rows, cols, x_row_stride, out_row_stride, BLOCK=32)
