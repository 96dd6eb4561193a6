# Wrong: the number of blocks is rounded down, so the tail is never written.
from tvm.script import tirx as T

THREADS = 256


def vector_add(x, y, out, n):
    blocks = max(1, n // THREADS)

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
