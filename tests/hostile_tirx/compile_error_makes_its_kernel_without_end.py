# The entry never returns a kernel.
import tvm


def vector_add(x, y, out, n):
    while True:
        tvm.IRModule({})
