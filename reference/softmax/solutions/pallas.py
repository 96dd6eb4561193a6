"""Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].

A program takes one row. Rows that fit its registers are read once and written once: 2·rows·cols·e bytes. Longer rows go
through the online form, with one running maximum and sum for every lane, and are read twice: 3·rows·cols·e bytes. The
second pass goes backwards, as what was read last is still in the L2 cache.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

MOST_COLS = 16384
CHUNK = 4096


def _short_kernel(x_ref, out_ref, *, cols, block):
    at = (pl.program_id(0), pl.ds(0, block))
    mask = jnp.arange(block) < cols
    x = plt.load(x_ref.at[at], mask=mask, other=-jnp.inf).astype(jnp.float32)
    numerator = jnp.exp(x - jnp.max(x))
    plt.store(out_ref.at[at], (numerator / jnp.sum(numerator)).astype(out_ref.dtype), mask=mask)


def _online_kernel(x_ref, out_ref, *, cols):
    row = pl.program_id(0)
    chunks = pl.cdiv(cols, CHUNK)

    def place(chunk):
        return (row, pl.ds(chunk * CHUNK, CHUNK)), chunk * CHUNK + jnp.arange(CHUNK) < cols

    def load(chunk):
        at, mask = place(chunk)
        return plt.load(x_ref.at[at], mask=mask, other=-jnp.inf).astype(jnp.float32)

    def look(chunk, carried):
        largest, total = carried
        x = load(chunk)
        raised = jnp.maximum(largest, x)
        # While a lane has seen -inf only, -inf - -inf must not become NaN.
        pivot = jnp.where(raised == -jnp.inf, 0.0, raised)
        return raised, total * jnp.exp(largest - pivot) + jnp.exp(x - pivot)

    nothing = jnp.full((CHUNK,), -jnp.inf, jnp.float32), jnp.zeros((CHUNK,), jnp.float32)
    largest, total = jax.lax.fori_loop(0, chunks, look, nothing)
    row_largest = jnp.max(largest)
    scale = 1.0 / jnp.sum(total * jnp.exp(largest - row_largest))

    def write(done, carried):
        chunk = chunks - 1 - done
        at, mask = place(chunk)
        out = jnp.exp(load(chunk) - row_largest) * scale
        plt.store(out_ref.at[at], out.astype(out_ref.dtype), mask=mask)
        return carried

    jax.lax.fori_loop(0, chunks, write, 0)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    if cols <= MOST_COLS:
        block = pl.next_power_of_2(cols)
        kernel = functools.partial(_short_kernel, cols=cols, block=block)
        warps = min(16, max(4, block // 512))
    else:
        kernel, warps = functools.partial(_online_kernel, cols=cols), 8
    launch = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype),
        grid=(rows,),
        compiler_params=plt.CompilerParams(num_warps=warps),
    )
    return launch(x)
