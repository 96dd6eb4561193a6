"""Changes one bit of one input."""

import ctypes

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    last = x.data_ptr() + (n - 1) * x.element_size()
    ctypes.c_uint8.from_address(last + x.element_size() - 2).value ^= 0x40
