"""Vector add, the staff kernel: out[i] = x[i] + y[i], every element read and written once.

A thread adds as many neighbours as fit 16 bytes, where all three vectors begin at a multiple of 16 bytes and n is a
whole number of such packs; with half as many, and so on, where they do not. Sizes and alignment are known when the
kernel is made, so the width is a constant of it.
"""

from tvm.script import tirx as T

THREADS = 256


def vector_add(x, y, out, n):
    width = min(vector.alignment for vector in (x, y, out)) // x.itemsize
    while n % width:
        width //= 2
    packs = n // width
    blocks = (packs + THREADS - 1) // THREADS

    @T.prim_func
    def add(
        xs: T.Buffer(x.shape, x.dtype),
        ys: T.Buffer(y.shape, y.dtype),
        sums: T.Buffer(out.shape, out.dtype),
    ):
        T.device_entry()
        block = T.cta_id([blocks])
        thread = T.thread_id([THREADS])
        pack = block * THREADS + thread
        if pack < packs:
            for lane in T.vectorized(width):
                sums[pack * width + lane] = xs[pack * width + lane] + ys[pack * width + lane]

    return add
