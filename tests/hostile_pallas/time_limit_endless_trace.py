"""The entry never says what is to be done."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 1024


def _add(x, y, n):
    def kernel(x_ref, y_ref, out_ref):
        start = pl.program_id(0) * BLOCK
        at, mask = pl.ds(start, BLOCK), start + jnp.arange(BLOCK) < n
        plt.store(out_ref.at[at], plt.load(x_ref.at[at], mask=mask) + plt.load(y_ref.at[at], mask=mask), mask=mask)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(pl.cdiv(n, BLOCK),))(x, y)


def vector_add(x, y, out, n):
    while True:
        x = x + y
        n = max(n, 1)
        if n < 0:
            return x
        x = y
