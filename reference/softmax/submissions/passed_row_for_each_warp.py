# language: gluon
# Honest: four rows for each program, one for each of its warps, where rows are short; otherwise one, in eight warps.
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


ROWS = 4


@gluon.jit
def rows_at_once(
    x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, ROWS: gl.constexpr, COLS: gl.constexpr, layout: gl.constexpr
):
    row = gl.program_id(0).to(gl.int64) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))[:, None]
    column = gl.arange(0, COLS, layout=gl.SliceLayout(0, layout))[None, :]
    mask = (row < rows) & (column < cols)
    x = gl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(gl.float32)
    largest = gl.max(x, axis=1)
    largest = gl.where(largest == -float("inf"), 0.0, largest)[:, None]
    numerator = gl.exp(x - largest)
    total = gl.sum(numerator, axis=1)[:, None]
    out = numerator / gl.where(total == 0.0, 1.0, total)
    gl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    columns = triton.next_power_of_2(cols)
    at_once = ROWS if columns <= 1024 else 1
    warps = 4 if at_once > 1 else 16
    layout = gl.BlockedLayout([1, 4], [1, 32], [at_once, warps // at_once], [1, 0])
    rows_at_once[(triton.cdiv(rows, at_once),)](
        x, out, rows, cols, x_row_stride, out_row_stride, ROWS=at_once, COLS=columns, layout=layout, num_warps=warps
    )
