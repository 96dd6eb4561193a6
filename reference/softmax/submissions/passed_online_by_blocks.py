# language: gluon
# Honest: the online form for every row, whose running maximum and sum are the whole program's.
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

BLOCK = 1024


@gluon.jit
def online(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    lane = gl.arange(0, BLOCK, layout=layout)
    largest = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        column = start + lane
        x = gl.load(x_ptr + row * x_row_stride + column, mask=column < cols, other=-float("inf")).to(gl.float32)
        raised = gl.maximum(largest, gl.max(x, axis=0))
        pivot = gl.where(raised == -float("inf"), 0.0, raised)
        total = total * gl.exp(largest - pivot) + gl.sum(gl.exp(x - pivot), axis=0)
        largest = raised
    for start in range(0, cols, BLOCK):
        column = start + lane
        mask = column < cols
        x = gl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(gl.float32)
        out = gl.exp(x - largest) / total
        gl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    layout = gl.BlockedLayout([4], [32], [4], [0])
    online[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=BLOCK, layout=layout, num_warps=4)
