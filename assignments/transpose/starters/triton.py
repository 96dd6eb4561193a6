"""Transpose: out[j, i] = x[i, j] for every row i and column j of x."""

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(
    x_ptr,  # the matrix
    out_ptr,  # its transpose
    rows,  # how many rows x has
    cols,  # how many columns x has
    x_row_stride,  # elements between the starts of two rows of x
    out_row_stride,  # the same for out
    BLOCK: tl.constexpr,  # rows and columns of one tile
):
    # A program owns the tile in row program_id(0) and column program_id(1) of the grid of tiles.
    row = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)

    mask = (row < rows)[:, None] & (column < cols)[None, :]
    x = tl.load(x_ptr + row[:, None] * x_row_stride + column[None, :], mask=mask)
    # Your part: this copies the tile to the place it came from. Where does it belong, and which way round?
    # Only what fits both shapes is written, so that the starter stays inside `out`.
    fits = mask & (row < cols)[:, None] & (column < rows)[None, :]
    tl.store(out_ptr + row[:, None] * out_row_stride + column[None, :], x, mask=fits)


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
    _transpose_kernel[grid](x, out, rows, cols, x_row_stride, out_row_stride, BLOCK=32)
