"""Illegal: no masks, so the last tiles are read and written beyond the matrices."""

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row[:, None] * x_row_stride + column[None, :])
    tl.store(out_ptr + column[:, None] * out_row_stride + row[None, :], tl.trans(x))


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
    _transpose_kernel[grid](x, out, rows, cols, x_row_stride, out_row_stride, BLOCK=32)
