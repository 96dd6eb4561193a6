"""Fills the folder it may write (bounded: 512 MiB)."""

import os
import tempfile

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
    if not os.path.exists(PATH):
        with open(PATH, "wb", buffering=0) as file:
            for _ in range(256):
                file.write(b"\x01" * 2**21)
        os.truncate(PATH, 1)
    _honest(x, y, out, n)


PATH = os.path.join(tempfile.gettempdir(), "filling")
