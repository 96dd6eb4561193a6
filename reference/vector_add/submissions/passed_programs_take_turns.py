# language: gluon
# Honest: 264 programs go over the vectors in turns, each with eight elements of a thread.
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


PROGRAMS = 264


@gluon.jit
def add(x_ptr, y_ptr, out_ptr, n, programs, BLOCK: gl.constexpr, layout: gl.constexpr):
    first = gl.program_id(0).to(gl.int64) * BLOCK
    lane = gl.arange(0, BLOCK, layout=layout)
    for start in range(first, n, programs * BLOCK):
        i = start + lane
        mask = i < n
        gl.store(out_ptr + i, gl.load(x_ptr + i, mask=mask) + gl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add(x, y, out, n):
    layout = gl.BlockedLayout([8], [32], [8], [0])
    programs = min(PROGRAMS, triton.cdiv(n, 2048))
    add[(programs,)](x, y, out, n, programs, BLOCK=2048, layout=layout, num_warps=8)
