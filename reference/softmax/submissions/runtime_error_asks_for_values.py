# language: pallas
"""The entry is traced: it cannot look at the values that a call brings."""

import jax
from jax.experimental import pallas as pl


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    largest = float(x.max())

    def kernel(x_ref, out_ref):
        out_ref[...] = jax.numpy.exp(x_ref[...] - largest)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype))(x)
