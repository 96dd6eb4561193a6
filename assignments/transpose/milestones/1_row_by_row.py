"""Transpose, first milestone: a program reads a piece of one row of x, and writes it down a column of out.

Loads are coalesced, stores are not: neighbouring threads write a whole row of out apart, so every element takes a
32-byte sector of its own, of which the other bytes are read and written back for nothing.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row_stride + column, mask=column < cols)
    tl.store(out_ptr + column * out_row_stride + row, x, mask=column < cols)


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    _transpose_kernel[(rows, triton.cdiv(cols, 1024))](x, out, cols, x_row_stride, out_row_stride, BLOCK=1024)
