# language: gluon
"""Vector add, a milestone: one element for every thread, in programs of 128.

A warp's 32 threads touch neighbouring addresses, so nothing is moved twice; but each access is 4 bytes wide, or 2.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

BLOCK = 128


@gluon.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = i < n
    gl.store(out_ptr + i, gl.load(x_ptr + i, mask=mask) + gl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add(x, y, out, n):
    layout = gl.BlockedLayout([1], [32], [4], [0])
    add[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK, layout=layout, num_warps=4)
