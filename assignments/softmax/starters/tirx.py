"""Softmax: every row of x becomes exp(x) divided by the sum of exp(x) over the row."""

from tvm.script import tirx as T

THREADS = 32  # one warp; a block handles one row


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    # The judge calls this function once for every layout of its tensors, compiles what it returns, and calls that.
    turns = (cols + THREADS - 1) // THREADS

    @T.prim_func
    def softmax_rows(x_ptr: T.handle, out_ptr: T.handle):
        # Rows may be padded: `layout` says where an element is, and `strides` what the judge has to hand in.
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([rows])
        thread = T.thread_id([THREADS])

        # Each thread goes over every 32nd element of the row and adds up its own part of the sum.
        total = T.alloc_local((1,), "float32")
        total[0] = 0.0
        for turn in T.serial(turns):
            column = turn * THREADS + thread
            if column < cols:
                # Your part: what is exp(10000)?
                total[0] += T.exp(T.cast(xs[row, column], "float32"))

        # Your part: every thread has a sum of its own now, and the row has one: T.cuda.warp_sum(…).
        for turn in T.serial(turns):
            column = turn * THREADS + thread
            if column < cols:
                numerator = T.exp(T.cast(xs[row, column], "float32"))
                results[row, column] = T.cast(numerator / total[0], out.dtype)

    return softmax_rows
