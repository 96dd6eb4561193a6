# language: pallas
"""Adds a block to half a block: found when the kernel is traced, in its line."""

import jax
from jax.experimental import pallas as pl

BLOCK = 1024


def vector_add(x, y, out, n):
    def add(x_ref, y_ref, out_ref):
        out_ref[...] = x_ref[...] + y_ref[pl.ds(0, BLOCK // 2)]

    block = pl.BlockSpec((BLOCK,), lambda program: (program,))
    return pl.pallas_call(
        add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(pl.cdiv(n, BLOCK),), in_specs=[block, block],
        out_specs=block,
    )(x, y)
