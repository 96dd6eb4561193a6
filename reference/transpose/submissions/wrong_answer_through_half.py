"""Wrong: passes the values through float16."""

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < cols)[None, :]
    x = tl.load(x_ptr + row[:, None] * x_row_stride + column[None, :], mask=mask).to(tl.float16).to(tl.float32)
    tl.store(out_ptr + column[:, None] * out_row_stride + row[None, :], tl.trans(x).to(out_ptr.dtype.element_ty), mask=tl.trans(mask))


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    grid = (triton.cdiv(rows, 128), triton.cdiv(cols, 128))
    _transpose_kernel[grid](x, out, rows, cols, x_row_stride, out_row_stride, BLOCK=128)
