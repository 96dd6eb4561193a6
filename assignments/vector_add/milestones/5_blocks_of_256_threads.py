# language: tirx
"""Vector add, a milestone: one thread for every element, in blocks of 256.

A warp's 32 threads touch neighbouring addresses, so nothing is moved twice; but each access is 4 bytes wide, or 2.
"""

from tvm.script import tirx as T

THREADS = 256


def vector_add(x, y, out, n):
    blocks = (n + THREADS - 1) // THREADS

    @T.prim_func
    def add(
        xs: T.Buffer(x.shape, x.dtype),
        ys: T.Buffer(y.shape, y.dtype),
        sums: T.Buffer(out.shape, out.dtype),
    ):
        T.device_entry()
        block = T.cta_id([blocks])
        thread = T.thread_id([THREADS])
        i = block * THREADS + thread
        if i < n:
            sums[i] = xs[i] + ys[i]

    return add
