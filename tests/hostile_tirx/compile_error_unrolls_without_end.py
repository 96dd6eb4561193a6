# TVM unrolls this for as long as there is memory, or time.
from tvm.script import tirx as T


def vector_add(x, y, out, n):
    @T.prim_func
    def add(
        xs: T.Buffer(x.shape, x.dtype),
        ys: T.Buffer(y.shape, y.dtype),
        sums: T.Buffer(out.shape, out.dtype),
    ):
        T.device_entry()
        block = T.cta_id([1])
        thread = T.thread_id([32])
        for i in T.unroll(100000):
            for j in T.unroll(100000):
                sums[thread] = sums[thread] + xs[(i * j) % n] * ys[(i + j) % n]

    return add
