"""Softmax: every row of x becomes exp(x) divided by the sum of exp(x) over the row."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def _softmax_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0)
    # The layout says which thread holds which columns of the row.
    column = gl.arange(0, BLOCK, layout=layout)
    mask = column < cols

    # Your part: what do the columns beyond the row count as, and what is exp(10000)?
    x = gl.load(x_ptr + row * x_row_stride + column, mask=mask, other=0.0).to(gl.float32)
    numerator = gl.exp(x)
    total = gl.sum(numerator, axis=0)
    gl.store(out_ptr + row * out_row_stride + column, (numerator / total).to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    # One program handles one row, and holds all of it. Your part: rows can be longer than a program can hold.
    block = triton.next_power_of_2(cols)
    layout = gl.BlockedLayout(size_per_thread=[1], threads_per_warp=[32], warps_per_cta=[4], order=[0])
    _softmax_kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=block, layout=layout, num_warps=4)
