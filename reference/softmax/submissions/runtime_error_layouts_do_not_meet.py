# language: gluon
# Two tensors in different layouts meet, and neither is converted.
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def mixed(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, one: gl.constexpr, two: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    column = gl.arange(0, BLOCK, layout=one)
    other = gl.arange(0, BLOCK, layout=two)
    x = gl.load(x_ptr + row * x_row_stride + column, mask=column < cols, other=-float("inf")).to(gl.float32)
    again = gl.load(x_ptr + row * x_row_stride + other, mask=other < cols, other=-float("inf")).to(gl.float32)
    numerator = gl.exp(x - gl.maximum(x, again))
    out = numerator / gl.sum(numerator, axis=0)
    gl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=column < cols)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    block = triton.next_power_of_2(cols)
    one, two = gl.BlockedLayout([4], [32], [8], [0]), gl.BlockedLayout([1], [32], [8], [0])
    mixed[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=block, one=one, two=two, num_warps=8)
