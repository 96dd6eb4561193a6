# The work is done by torch, in a function that the kernel's own host code calls; the kernel has one thread for show.
import torch
import tvm_ffi
from tvm.script import tirx as T


@tvm_ffi.register_global_func("hostile.answer", override=True)
def answer(x, y, out):
    print("called back")
    torch.add(torch.from_dlpack(x), torch.from_dlpack(y), out=torch.from_dlpack(out))


def vector_add(x, y, out, n):
    @T.prim_func
    def add(
        xs: T.Buffer(x.shape, x.dtype),
        ys: T.Buffer(y.shape, y.dtype),
        sums: T.Buffer(out.shape, out.dtype),
    ):
        T.evaluate(T.call_packed("hostile.answer", xs.data, ys.data, sums.data))
        T.device_entry()
        block = T.cta_id([1])
        thread = T.thread_id([32])
        if thread < 0:
            sums[thread] = xs[thread]

    return add
