"""Numpy adds all but the first element, and a kernel of its own adds that one. Staff see a finding."""

import numpy
import triton
import triton.language as tl


@triton.jit
def _first_kernel(x_ptr, y_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr))


def vector_add(x, y, out, n):
    numpy.add(x.numpy()[1:], y.numpy()[1:], out=out.numpy()[1:])
    _first_kernel[(1,)](x, y, out)
