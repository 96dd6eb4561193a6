# language: gluon
# Honest, and in vain: the sum goes through shared memory into another layout before it is written.
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


BLOCK = 1024


@gluon.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, wide: gl.constexpr, narrow: gl.constexpr):
    start = gl.program_id(0).to(gl.int64) * BLOCK
    i = start + gl.arange(0, BLOCK, layout=wide)
    total = gl.load(x_ptr + i, mask=i < n) + gl.load(y_ptr + i, mask=i < n)
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[0])
    kept = gl.allocate_shared_memory(total.dtype, [BLOCK], shared, total)
    j = start + gl.arange(0, BLOCK, layout=narrow)
    gl.store(out_ptr + j, kept.load(narrow), mask=j < n)


def vector_add(x, y, out, n):
    wide, narrow = gl.BlockedLayout([4], [32], [4], [0]), gl.BlockedLayout([1], [32], [4], [0])
    add[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK, wide=wide, narrow=narrow, num_warps=4)
