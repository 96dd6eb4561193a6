"""Never ends: the loop's own step was forgotten."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


def vector_add(x, y, out, n):
    start = 0
    while start < n:
        _add_kernel[(1,)](x, y, out, start, n, BLOCK=BLOCK)
