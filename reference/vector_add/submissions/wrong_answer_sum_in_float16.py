# language: pallas
"""Added in float16, whatever the vectors are."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 1024


def vector_add(x, y, out, n):
    def add(x_ref, y_ref, out_ref):
        at = pl.ds(pl.program_id(0) * BLOCK, BLOCK)
        mask = pl.program_id(0) * BLOCK + jnp.arange(BLOCK) < n
        half = [plt.load(ref.at[at], mask=mask).astype(jnp.float16) for ref in (x_ref, y_ref)]
        plt.store(out_ref.at[at], (half[0] + half[1]).astype(out_ref.dtype), mask=mask)

    return pl.pallas_call(add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(pl.cdiv(n, BLOCK),))(x, y)
