"""Vector add, the staff kernel: out[i] = x[i] + y[i], every element read and written once.

A thread adds as many neighbours as fit 16 bytes, where all three vectors begin at a multiple of 16 bytes and n is a
whole number of such packs; with half as many, and so on, where they do not. Layout and alignment are known when the
kernel is traced, so the width is a constant of it.
"""

import cutlass
from cutlass import cute

THREADS = 256


def _packs_of(vector, width):
    return cute.logical_divide(vector, cute.make_layout(width))


@cute.kernel
def _add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, width: cutlass.Constexpr, packs: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    pack = block * THREADS + thread
    if pack < packs:
        xs = cute.make_rmem_tensor(width, x.element_type)
        ys = cute.make_rmem_tensor(width, x.element_type)
        cute.autovec_copy(_packs_of(x, width)[None, pack], xs)
        cute.autovec_copy(_packs_of(y, width)[None, pack], ys)
        xs.store(xs.load() + ys.load())
        cute.autovec_copy(xs, _packs_of(out, width)[None, pack])


def vector_add(x, y, out, n):
    # Plain Python, which `cute.jit` would make conditions and loops of the device's of.
    width = min(t.iterator.alignment for t in (x, y, out)) * 8 // x.element_type.width
    while n % width:
        width //= 2
    packs = n // width
    blocks = (packs + THREADS - 1) // THREADS
    _add_kernel(x, y, out, width, packs).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1])
