"""Softmax of rows, one program a row; long rows in blocks, online."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    largest = -float("inf")
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + row * x_row_stride + start + lanes, mask=start + lanes < cols, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x.to(tl.float32), axis=0))
    total = 0.0
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + row * x_row_stride + start + lanes, mask=start + lanes < cols, other=-float("inf"))
        total += tl.sum(tl.exp(x.to(tl.float32) - largest), axis=0)
    for start in range(0, cols, BLOCK):
        mask = start + lanes < cols
        x = tl.load(x_ptr + row * x_row_stride + start + lanes, mask=mask, other=-float("inf"))
        out = tl.exp(x.to(tl.float32) - largest) / total
        tl.store(out_ptr + row * out_row_stride + start + lanes, out, mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    block = min(4096, triton.next_power_of_2(cols))
    softmax_kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=block)
