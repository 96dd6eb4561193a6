"""Vector add, the staff kernel: out[i] = x[i] + y[i], every element read and written once.

The layout says it all: a thread holds as many neighbours as fit 16 bytes, a warp's 32 threads stand next to each other.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

WARPS = 4
PACKS = 2  # of each thread, of each vector: all are under way before one is needed


@gluon.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = i < n
    x = gl.load(x_ptr + i, mask=mask)
    y = gl.load(y_ptr + i, mask=mask)
    gl.store(out_ptr + i, x + y, mask=mask)


def vector_add(x, y, out, n):
    pack = 16 // x.element_size()
    block = PACKS * pack * 32 * WARPS
    layout = gl.BlockedLayout([pack], [32], [WARPS], [0])
    _add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block, layout=layout, num_warps=WARPS)
