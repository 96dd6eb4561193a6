# language: pallas
"""A name that nobody defines, used while the file is loaded."""

import jax
from jax.experimental import pallas as pl

BLOCK = pl.next_power_of_2(COLUMNS)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    return jax.numpy.zeros((rows, BLOCK))
