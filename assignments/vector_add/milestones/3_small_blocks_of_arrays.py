# language: pallas
"""Vector add, a milestone: blocks of 256 elements.

Every byte that is fetched is used at once. What is left is size: a program adds 256 numbers only, and a vector needs
many programs.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BLOCK = 256


def _vector_add_kernel(x_ref, y_ref, out_ref, *, n):
    start = pl.program_id(0) * BLOCK
    block = pl.ds(start, BLOCK)
    mask = start + jnp.arange(BLOCK) < n
    total = plt.load(x_ref.at[block], mask=mask) + plt.load(y_ref.at[block], mask=mask)
    plt.store(out_ref.at[block], total, mask=mask)


def vector_add(x, y, out, n):
    add = pl.pallas_call(
        functools.partial(_vector_add_kernel, n=n),
        out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype),
        grid=(pl.cdiv(n, BLOCK),),
        compiler_params=plt.CompilerParams(num_warps=1),
    )
    return add(x, y)
