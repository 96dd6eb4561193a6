# language: gluon
# Wrong: the maximum is not subtracted, and large values overflow.
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def plain(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    column = gl.arange(0, BLOCK, layout=layout)
    mask = column < cols
    x = gl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(gl.float32)
    numerator = gl.exp(x)
    out = numerator / gl.sum(numerator, axis=0)
    gl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    block = triton.next_power_of_2(cols)
    layout = gl.BlockedLayout([4], [32], [8], [0])
    plain[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=block, layout=layout, num_warps=8)
