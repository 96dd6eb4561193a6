"""Vector add, the staff kernel: out[i] = x[i] + y[i], every element read and written once.

A program adds one block. On a GPU a block beyond the end is masked, as nothing else keeps a program within an array.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 2048


def _add_kernel(x_ref, y_ref, out_ref, *, n):
    start = pl.program_id(0) * BLOCK
    block = pl.ds(start, BLOCK)
    mask = start + jnp.arange(BLOCK) < n
    x = plt.load(x_ref.at[block], mask=mask)
    y = plt.load(y_ref.at[block], mask=mask)
    plt.store(out_ref.at[block], x + y, mask=mask)


def vector_add(x, y, out, n):
    add = pl.pallas_call(
        functools.partial(_add_kernel, n=n),
        out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype),
        grid=(pl.cdiv(n, BLOCK),),
        compiler_params=plt.CompilerParams(num_warps=4),
    )
    return add(x, y)
