"""Softmax: every row of x becomes exp(x) divided by the sum of exp(x) over the row."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_kernel(
    x_ptr,  # input matrix
    out_ptr,  # output matrix
    cols,  # how many columns both have
    x_row_stride,  # elements from one row of x to the next
    out_row_stride,  # elements from one row of out to the next
    BLOCK_SIZE: tl.constexpr,  # a power of two that is at least `cols`
):
    # One program handles one row, and holds all of it at once.
    row = tl.program_id(axis=0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < cols

    x = tl.load(x_ptr + row * x_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    # Your part: what is exp(10000)? And what do the lanes beyond the last column add to the sum?
    numerator = tl.exp(x)
    out = numerator / tl.sum(numerator, axis=0)

    tl.store(out_ptr + row * out_row_stride + columns, out, mask=mask)


def softmax(
    x: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    out_row_stride: int,
) -> None:
    # The judge calls this function. It writes its answer into `out`; what it returns is ignored.
    block_size = triton.next_power_of_2(cols)
    _softmax_kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK_SIZE=block_size)
