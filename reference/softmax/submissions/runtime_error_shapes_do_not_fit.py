"""Fails when called: blocks of two sizes meet in one expression."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_kernel(x_ptr, out_ptr, cols, BLOCK_SIZE: tl.constexpr):
    columns = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + columns, mask=columns < cols, other=-float("inf"))
    weights = tl.arange(0, 2 * BLOCK_SIZE)
    tl.store(out_ptr + columns, x * weights, mask=columns < cols)


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    _softmax_kernel[(rows,)](x, out, cols, BLOCK_SIZE=2 * triton.next_power_of_2(cols))
