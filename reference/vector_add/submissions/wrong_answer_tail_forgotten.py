# language: pallas
"""The number of programs is rounded down."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 1024


def vector_add(x, y, out, n):
    def add(x_ref, y_ref, out_ref):
        at = pl.ds(pl.program_id(0) * BLOCK, BLOCK)
        mask = pl.program_id(0) * BLOCK + jnp.arange(BLOCK) < n
        plt.store(out_ref.at[at], plt.load(x_ref.at[at], mask=mask) + plt.load(y_ref.at[at], mask=mask), mask=mask)

    return pl.pallas_call(add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(max(1, n // BLOCK),))(x, y)
