# language: gluon
# The two vectors are loaded in different layouts, which are not converted before they are added.
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


BLOCK = 1024


@gluon.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, first: gl.constexpr, second: gl.constexpr):
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=first)
    j = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=second)
    gl.store(out_ptr + i, gl.load(x_ptr + i, mask=i < n) + gl.load(y_ptr + j, mask=j < n), mask=i < n)


def vector_add(x, y, out, n):
    first, second = gl.BlockedLayout([4], [32], [4], [0]), gl.BlockedLayout([1], [32], [4], [0])
    add[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK, first=first, second=second, num_warps=4)
