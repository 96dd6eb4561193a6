"""Takes a fifth of a second for each call: had it the inputs that much earlier, it would seem to take no time."""

import time

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


SECONDS = 0.2


def vector_add(x, y, out, n):
    time.sleep(SECONDS)
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
