# language: pallas
"""Honest: the output's own memory is an operand, and the kernel writes into it."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 4096


def vector_add(x, y, out, n):
    def add(x_ref, y_ref, _, out_ref):
        at = pl.ds(pl.program_id(0) * BLOCK, BLOCK)
        mask = pl.program_id(0) * BLOCK + jnp.arange(BLOCK) < n
        total = plt.load(x_ref.at[at], mask=mask) + plt.load(y_ref.at[at], mask=mask)
        plt.store(out_ref.at[at], total, mask=mask)

    shape = jax.ShapeDtypeStruct((n,), x.dtype)
    call = pl.pallas_call(
        add,
        out_shape=shape,
        grid=(pl.cdiv(n, BLOCK),),
        input_output_aliases={2: 0},
        compiler_params=plt.CompilerParams(num_warps=8),
    )
    return call(x, y, out)
