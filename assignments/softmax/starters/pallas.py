"""Softmax: every row of x becomes exp(x) divided by the sum of exp(x) over the row."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt


def _softmax_kernel(x_ref, out_ref, *, cols, block):
    # One program handles one row, and holds all of it at once; `block` is a power of two that is at least `cols`.
    row = pl.program_id(0)
    columns = jnp.arange(block)
    mask = columns < cols

    x = plt.load(x_ref.at[row, pl.ds(0, block)], mask=mask, other=0.0).astype(jnp.float32)
    # Your part: what is exp(10000)? And what do the lanes beyond the last column add to the sum?
    numerator = jnp.exp(x)
    out = numerator / jnp.sum(numerator)

    plt.store(out_ref.at[row, pl.ds(0, block)], out.astype(out_ref.dtype), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    # The judge calls this function once for every shape. It returns what belongs into out. Arrays have no padding
    # between rows here, so the strides are not needed.
    kernel = functools.partial(_softmax_kernel, cols=cols, block=pl.next_power_of_2(cols))
    shape = jax.ShapeDtypeStruct(out.shape, out.dtype)
    return pl.pallas_call(kernel, out_shape=shape, grid=(rows,))(x)
