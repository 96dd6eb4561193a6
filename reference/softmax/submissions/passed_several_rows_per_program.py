# language: pallas
"""Honest: short rows are taken several at a time, long ones in three passes over chunks."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

CHUNK = 2048
ELEMENTS = 4096


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    shape = jax.ShapeDtypeStruct(out.shape, out.dtype)
    block = pl.next_power_of_2(cols)
    if block > 16384:
        return pl.pallas_call(_three_passes(cols), out_shape=shape, grid=(rows,))(x)
    together = max(1, ELEMENTS // block)
    return pl.pallas_call(_tile(rows, cols, together, block), out_shape=shape, grid=(pl.cdiv(rows, together),))(x)


def _tile(rows, cols, together, block):
    def kernel(x_ref, out_ref):
        first = pl.program_id(0) * together
        at = pl.ds(first, together), pl.ds(0, block)
        mask = (first + jnp.arange(together) < rows)[:, None] & (jnp.arange(block) < cols)[None, :]
        x = plt.load(x_ref.at[at], mask=mask, other=-jnp.inf).astype(jnp.float32)
        largest = jnp.max(x, axis=1, keepdims=True)
        # A row beyond the last one is -inf only.
        numerator = jnp.exp(x - jnp.where(largest == -jnp.inf, 0.0, largest))
        total = jnp.sum(numerator, axis=1, keepdims=True)
        share = numerator / jnp.where(total == 0.0, 1.0, total)
        plt.store(out_ref.at[at], share.astype(out_ref.dtype), mask=mask)

    return kernel


def _three_passes(cols):
    def kernel(x_ref, out_ref):
        row = pl.program_id(0)

        def chunk(number):
            at, mask = pl.ds(number * CHUNK, CHUNK), number * CHUNK + jnp.arange(CHUNK) < cols
            return at, mask, plt.load(x_ref.at[row, at], mask=mask, other=-jnp.inf).astype(jnp.float32)

        chunks = pl.cdiv(cols, CHUNK)
        largest = jax.lax.fori_loop(0, chunks, lambda i, seen: jnp.maximum(seen, jnp.max(chunk(i)[2])), -jnp.inf)
        total = jax.lax.fori_loop(0, chunks, lambda i, seen: seen + jnp.sum(jnp.exp(chunk(i)[2] - largest)), 0.0)

        def write(number, carried):
            at, mask, x = chunk(number)
            plt.store(out_ref.at[row, at], (jnp.exp(x - largest) / total).astype(out_ref.dtype), mask=mask)
            return carried

        jax.lax.fori_loop(0, chunks, write, 0)

    return kernel
