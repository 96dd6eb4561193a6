"""A beginner's way: one flat index for each output element, turned into row and column by division and remainder."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_flat(x_ptr, out_ptr, rows, cols, sx, so, total, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    # 64 bits, since rows * stride can be large
    i = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    # i counts the elements of the output, row by row
    out_row = i // rows
    out_col = i % rows
    val = tl.load(x_ptr + out_col * sx + out_row, mask=ok)
    tl.store(out_ptr + out_row * so + out_col, val, mask=ok)


def transpose(x, out, rows, cols, x_row_stride, out_row_stride):
    total = rows * cols
    BLOCK = 256
    n_blocks = total // BLOCK
    if total % BLOCK != 0:
        n_blocks = n_blocks + 1
    transpose_flat[(n_blocks,)](x, out, rows, cols, x_row_stride, out_row_stride, total, BLOCK=BLOCK)
