# language: cute_dsl
"""Vector add, a milestone: one thread for every element, in blocks of 256.

A warp's 32 threads touch neighbouring addresses, so nothing is moved twice; but each access is 4 bytes wide, or 2.
"""

import cutlass
from cutlass import cute

THREADS = 256


@cute.kernel
def _vector_add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < n:
        out[i] = x[i] + y[i]


@cute.jit
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    blocks = (n + THREADS - 1) // THREADS
    _vector_add_kernel(x, y, out, n).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1])
