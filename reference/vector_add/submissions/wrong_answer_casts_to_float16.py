# Wrong: it adds in half precision.
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
            sums[i] = T.cast(T.cast(xs[i], "float16") + T.cast(ys[i], "float16"), out.dtype)

    return add
