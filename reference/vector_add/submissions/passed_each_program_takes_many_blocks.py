# language: pallas
"""Honest: as many programs on any vector, each of which goes from block to block."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

PROGRAMS = 512
BLOCK = 1024


def _add_kernel(x_ref, y_ref, out_ref, *, n, programs):
    first = pl.program_id(0)

    def add_block(turn, carried):
        start = (turn * programs + first) * BLOCK
        at, mask = pl.ds(start, BLOCK), start + jnp.arange(BLOCK) < n
        plt.store(out_ref.at[at], plt.load(x_ref.at[at], mask=mask) + plt.load(y_ref.at[at], mask=mask), mask=mask)
        return carried

    blocks = pl.cdiv(n, BLOCK)
    jax.lax.fori_loop(0, pl.cdiv(blocks, programs), add_block, 0)


def vector_add(x, y, out, n):
    programs = min(PROGRAMS, pl.cdiv(n, BLOCK))
    return pl.pallas_call(
        functools.partial(_add_kernel, n=n, programs=programs), out_shape=out, grid=(programs,)
    )(x, y)
