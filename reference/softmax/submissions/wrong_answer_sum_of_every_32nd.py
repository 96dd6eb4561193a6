# Wrong: every thread divides by its own part of the sum.
from tvm.script import tirx as T

THREADS = 32


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    turns = (cols + THREADS - 1) // THREADS

    @T.prim_func
    def softmax_rows(x_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([rows])
        thread = T.thread_id([THREADS])

        largest = T.alloc_local((1,), "float32")
        largest[0] = -T.infinity("float32")
        for turn in T.serial(turns):
            column = turn * THREADS + thread
            if column < cols:
                largest[0] = T.max(largest[0], T.cast(xs[row, column], "float32"))
        largest[0] = T.cuda.warp_max(largest[0])

        total = T.alloc_local((1,), "float32")
        total[0] = 0.0
        for turn in T.serial(turns):
            column = turn * THREADS + thread
            if column < cols:
                total[0] += T.exp(T.cast(xs[row, column], "float32") - largest[0])

        for turn in T.serial(turns):
            column = turn * THREADS + thread
            if column < cols:
                numerator = T.exp(T.cast(xs[row, column], "float32") - largest[0])
                results[row, column] = T.cast(numerator / total[0], out.dtype)

    return softmax_rows
