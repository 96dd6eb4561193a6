# A matrix has two coordinates, and is given three: the kernel is refused when it is made.
from tvm.script import tirx as T


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    @T.prim_func
    def softmax_rows(x_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([rows])
        thread = T.thread_id([32])
        results[row, thread] = xs[row, thread, 0]

    return softmax_rows
