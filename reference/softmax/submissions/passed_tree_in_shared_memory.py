# Honest: 128 threads per row, which meet in shared memory by a tree instead of by shuffles.
from tvm.script import tirx as T

THREADS = 128
LEVELS = 7


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    turns = (cols + THREADS - 1) // THREADS

    @T.prim_func
    def softmax_rows(x_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([rows])
        thread = T.thread_id([THREADS])
        words = T.alloc_shared((THREADS,), "float32")
        largest = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")

        words[thread] = -T.infinity("float32")
        for turn in T.serial(turns):
            if turn * THREADS + thread < cols:
                words[thread] = T.max(words[thread], T.cast(xs[row, turn * THREADS + thread], "float32"))
        for level in T.unroll(LEVELS):
            T.cuda.cta_sync()
            if thread < (THREADS // 2) >> level:
                words[thread] = T.max(words[thread], words[thread + ((THREADS // 2) >> level)])
        T.cuda.cta_sync()
        largest[0] = words[0]
        T.cuda.cta_sync()

        words[thread] = 0.0
        for turn in T.serial(turns):
            if turn * THREADS + thread < cols:
                words[thread] += T.exp(T.cast(xs[row, turn * THREADS + thread], "float32") - largest[0])
        for level in T.unroll(LEVELS):
            T.cuda.cta_sync()
            if thread < (THREADS // 2) >> level:
                words[thread] += words[thread + ((THREADS // 2) >> level)]
        T.cuda.cta_sync()
        total[0] = words[0]

        for turn in T.serial(turns):
            if turn * THREADS + thread < cols:
                numerator = T.exp(T.cast(xs[row, turn * THREADS + thread], "float32") - largest[0])
                results[row, turn * THREADS + thread] = T.cast(numerator / total[0], out.dtype)

    return softmax_rows
