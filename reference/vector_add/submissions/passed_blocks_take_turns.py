# Honest: a fixed number of blocks goes over the vectors, each thread by the whole grid's width at a time.
from tvm.script import tirx as T

THREADS = 256
MOST_BLOCKS = 1056


def vector_add(x, y, out, n):
    blocks = min(MOST_BLOCKS, (n + THREADS - 1) // THREADS)
    step = blocks * THREADS

    @T.prim_func
    def add(x_ptr: T.handle, y_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, (n,), x.dtype)
        ys = T.match_buffer(y_ptr, (n,), y.dtype)
        sums = T.match_buffer(out_ptr, (n,), out.dtype)
        T.device_entry()
        block = T.cta_id([blocks])
        thread = T.thread_id([THREADS])
        for turn in T.serial((n + step - 1) // step):
            i = turn * step + block * THREADS + thread
            if i < n:
                sums[i] = xs[i] + ys[i]

    return add
