# Honest: the kernel stands outside of the entry, and sizes and type are given to it as constants.
from __future__ import annotations

from tvm.script import tirx as T


@T.jit
def add(
    xs: T.Buffer((N,), DTYPE),
    ys: T.Buffer((N,), DTYPE),
    sums: T.Buffer((N,), DTYPE),
    *,
    N: T.constexpr,
    DTYPE: T.constexpr,
    WARPS: T.constexpr = 16,
):
    T.device_entry()
    block = T.cta_id([(N + WARPS * 32 - 1) // (WARPS * 32)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    i = block * WARPS * 32 + warp * 32 + lane
    if i < N:
        sums[i] = xs[i] + ys[i]


def vector_add(x, y, out, n):
    return add.specialize(N=n, DTYPE=x.dtype)
