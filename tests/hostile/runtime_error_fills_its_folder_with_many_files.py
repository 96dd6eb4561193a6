"""The same with many files, each small enough (bounded: 512 MiB)."""

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
    global TRIED
    if not TRIED:
        TRIED = True
        for index in range(256):
            with open(os.path.join(tempfile.gettempdir(), f"filling-{index}"), "wb", buffering=0) as file:
                if file.write(b"\x01" * 2**21) != 2**21:
                    raise OSError("full")
        for index in range(256):
            os.unlink(os.path.join(tempfile.gettempdir(), f"filling-{index}"))
    _honest(x, y, out, n)


TRIED = False
