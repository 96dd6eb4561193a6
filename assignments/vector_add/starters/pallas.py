"""Vector add: out[i] = x[i] + y[i] for every i below n."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 1024  # how many elements one program handles


def _vector_add_kernel(x_ref, y_ref, out_ref, *, n):
    # Every program of the grid runs this same code; its id says which block of the vectors is its own.
    start = pl.program_id(0) * BLOCK
    block = pl.ds(start, BLOCK)

    # The last block may reach beyond the end of the vectors: lanes whose mask is false touch no memory.
    mask = start + jnp.arange(BLOCK) < n

    x = plt.load(x_ref.at[block], mask=mask)
    # Your part: load y in the same way, and store the sum instead of x.
    plt.store(out_ref.at[block], x, mask=mask)


def vector_add(x, y, out, n):
    # The judge calls this function once for every shape, and runs what it describes. It returns what belongs into out.
    # Your part: one program is enough for 1024 elements only. How many does a vector of n elements need?
    grid = (1,)
    shape = jax.ShapeDtypeStruct(out.shape, out.dtype)
    return pl.pallas_call(functools.partial(_vector_add_kernel, n=n), out_shape=shape, grid=grid)(x, y)
