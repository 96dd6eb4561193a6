# language: gluon
"""Softmax, a milestone: one program of four warps goes over a row three times, 128 columns at a time.

The first pass finds the maximum, the second the sum, the third divides; every step reduces over the program.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

BLOCK = 128


@gluon.jit
def three_passes(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    lane = gl.arange(0, BLOCK, layout=layout)
    largest = -float("inf")
    for start in range(0, cols, BLOCK):
        x = gl.load(x_ptr + start + lane, mask=start + lane < cols, other=-float("inf")).to(gl.float32)
        largest = gl.maximum(largest, gl.max(x, axis=0))
    total = 0.0
    for start in range(0, cols, BLOCK):
        x = gl.load(x_ptr + start + lane, mask=start + lane < cols, other=-float("inf")).to(gl.float32)
        total += gl.sum(gl.exp(x - largest), axis=0)
    for start in range(0, cols, BLOCK):
        mask = start + lane < cols
        x = gl.load(x_ptr + start + lane, mask=mask, other=-float("inf")).to(gl.float32)
        gl.store(out_ptr + start + lane, (gl.exp(x - largest) / total).to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    layout = gl.BlockedLayout([1], [32], [4], [0])
    three_passes[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=BLOCK, layout=layout, num_warps=4)
