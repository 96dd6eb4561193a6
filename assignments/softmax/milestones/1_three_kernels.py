"""Softmax, first milestone: three kernels, one for each step of the formula.

The first finds every row's maximum, the second the sum of exponentials, the third divides. Between kernels everything
goes through memory: x is read three times, and the intermediate vectors are written and read back.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _row_max_kernel(x_ptr, max_ptr, cols, x_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = -float("inf")
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, tl.max(x, axis=0))
    tl.store(max_ptr + row, largest)


@triton.jit
def _row_sum_kernel(x_ptr, max_ptr, sum_ptr, cols, x_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = tl.load(max_ptr + row)
    total = 0.0
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - largest), axis=0)
    tl.store(sum_ptr + row, total)


@triton.jit
def _divide_kernel(x_ptr, max_ptr, sum_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = tl.load(max_ptr + row)
    total = tl.load(sum_ptr + row)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=-float("inf")).to(tl.float32)
        out = tl.exp(x - largest) / total
        tl.store(out_ptr + row * out_row_stride + columns, out.to(out_ptr.dtype.element_ty), mask=columns < cols)


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    largest = torch.empty(rows, dtype=torch.float32, device=x.device)
    total = torch.empty(rows, dtype=torch.float32, device=x.device)
    _row_max_kernel[(rows,)](x, largest, cols, x_row_stride, BLOCK_SIZE=1024)
    _row_sum_kernel[(rows,)](x, largest, total, cols, x_row_stride, BLOCK_SIZE=1024)
    _divide_kernel[(rows,)](x, largest, total, out, cols, x_row_stride, out_row_stride, BLOCK_SIZE=1024)
