"""Vector add: out[i] = x[i] + y[i] for every i below n."""

from tvm.script import tirx as T

THREADS = 256  # how many threads a block has


def vector_add(x, y, out, n):
    # The judge calls this function once for every layout of its tensors: x, y and out have a shape and a dtype here, and
    # no values yet. What it returns is compiled, and called with the tensors.
    # Your part: one block is enough for 256 elements only. How many does a vector of n elements need?
    blocks = 1

    @T.prim_func
    def add(
        xs: T.Buffer(x.shape, x.dtype),
        ys: T.Buffer(y.shape, y.dtype),
        sums: T.Buffer(out.shape, out.dtype),
    ):
        # From here on every thread of every block runs the same code; its two numbers say which element is its own.
        T.device_entry()
        block = T.cta_id([blocks])
        thread = T.thread_id([THREADS])
        i = block * THREADS + thread

        # The last block may reach beyond the end of the vectors: its other threads touch no memory.
        if i < n:
            # Your part: y has to be added.
            sums[i] = xs[i]

    return add
