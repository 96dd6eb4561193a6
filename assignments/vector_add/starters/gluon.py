"""Vector add: out[i] = x[i] + y[i] for every i below n."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

BLOCK = 1024  # how many elements one program handles


@gluon.jit
def _vector_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    # The layout says which thread holds which of the BLOCK elements.
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)

    # The last program may reach beyond the end of the vectors: its other elements touch no memory.
    mask = i < n
    x = gl.load(x_ptr + i, mask=mask)

    # Your part: y has to be loaded and added.
    gl.store(out_ptr + i, x, mask=mask)


def vector_add(x, y, out, n):
    # One element for each thread, 32 threads to a warp, 4 warps. Which layout makes each access 16 bytes wide?
    layout = gl.BlockedLayout(size_per_thread=[1], threads_per_warp=[32], warps_per_cta=[4], order=[0])

    # Your part: one program is enough for 1024 elements only. How many does a vector of n elements need?
    _vector_add_kernel[(1,)](x, y, out, n, BLOCK=BLOCK, layout=layout, num_warps=4)
