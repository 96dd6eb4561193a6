"""Wrong: normalises columns instead of rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_kernel(
    x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    row = tl.arange(0, BLOCK_ROWS)[:, None]
    column = (tl.program_id(axis=0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS))[None, :]
    mask = (row < rows) & (column < cols)
    x = tl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0, keep_dims=True))
    out = numerator / tl.sum(numerator, axis=0, keep_dims=True)
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    grid = (triton.cdiv(cols, 1024),)
    block_rows = triton.next_power_of_2(rows)
    _softmax_kernel[grid](
        x, out, rows, cols, x_row_stride, out_row_stride, BLOCK_ROWS=block_rows, BLOCK_COLS=1024
    )
