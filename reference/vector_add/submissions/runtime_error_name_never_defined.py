# The kernel names a buffer that there is none of: it is refused when it is made.
from tvm.script import tirx as T


def vector_add(x, y, out, n):
    @T.prim_func
    def add(
        xs: T.Buffer(x.shape, x.dtype),
        ys: T.Buffer(y.shape, y.dtype),
        sums: T.Buffer(out.shape, out.dtype),
    ):
        T.device_entry()
        block = T.cta_id([(n + 255) // 256])
        thread = T.thread_id([256])
        i = block * 256 + thread
        if i < n:
            sums[i] = xs[i] + zs[i]

    return add
