"""Residual addition and RMSNorm: add the residual stream, and bring every row of the sum to root mean square one."""

import torch
import triton
import triton.language as tl


@triton.jit
def _residual_norm_kernel(
    x_ptr,  # what the last layer gave
    r_ptr,  # the residual stream so far
    weight_ptr,  # the factor for each column
    s_ptr,  # where the sum goes
    out_ptr,  # where the norm of the sum goes
    cols,  # how many columns all matrices have
    x_row_stride,  # elements from one row of x to the next
    r_row_stride,  # the same for r
    s_row_stride,  # and for s
    out_row_stride,  # and for out
    eps,  # added to the mean of the squares, under the root
    BLOCK_SIZE: tl.constexpr,  # a power of two that is at least `cols`
):
    # One program handles one row, and holds all of it at once.
    row = tl.program_id(axis=0).to(tl.int64)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < cols

    x = tl.load(x_ptr + row * x_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    # Your part: the residual stream. What is stored is rounded; which of the two sums does the norm use?
    s = x
    tl.store(s_ptr + row * s_row_stride + columns, s, mask=mask)

    mean_square = tl.sum(s * s, axis=0) / cols
    # Your part: the weight.
    out = s * tl.rsqrt(mean_square + eps)
    tl.store(out_ptr + row * out_row_stride + columns, out, mask=mask)


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
    # The judge calls this function. It writes its answers into `s` and `out`; what it returns is ignored.
    strides = (x_row_stride, r_row_stride, s_row_stride, out_row_stride)
    block_size = triton.next_power_of_2(cols)
    _residual_norm_kernel[(rows,)](x, r, weight, s, out, cols, *strides, eps, BLOCK_SIZE=block_size)
