"""Honest: maximum, sum and quotient in three kernels, with scratch memory between them, and another order of the row's sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def _row_max_kernel(x_ptr, max_ptr, cols, x_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=-float("inf"))
        largest = tl.maximum(largest, x.to(tl.float32))
    tl.store(max_ptr + row, tl.max(largest, axis=0))


@triton.jit
def _numerator_kernel(x_ptr, max_ptr, numerator_ptr, sum_ptr, cols, x_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = tl.load(max_ptr + row)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < cols, other=-float("inf"))
        numerator = tl.exp(x.to(tl.float32) - largest)
        tl.store(numerator_ptr + row * cols + columns, numerator, mask=columns < cols)
        total += numerator
    tl.store(sum_ptr + row, tl.sum(total, axis=0))


@triton.jit
def _divide_kernel(numerator_ptr, sum_ptr, out_ptr, cols, out_row_stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    inverse = 1.0 / tl.load(sum_ptr + row)
    for start in range(0, cols, BLOCK_SIZE):
        columns = start + tl.arange(0, BLOCK_SIZE)
        numerator = tl.load(numerator_ptr + row * cols + columns, mask=columns < cols)
        out = (numerator * inverse).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * out_row_stride + columns, out, mask=columns < cols)


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    numerator = torch.empty(rows, cols, dtype=torch.float32, device=x.device)
    largest = torch.empty(rows, dtype=torch.float32, device=x.device)
    total = torch.empty(rows, dtype=torch.float32, device=x.device)
    block_size = 4096 if cols > 1024 else 1024
    _row_max_kernel[(rows,)](x, largest, cols, x_row_stride, BLOCK_SIZE=block_size)
    _numerator_kernel[(rows,)](x, largest, numerator, total, cols, x_row_stride, BLOCK_SIZE=block_size)
    _divide_kernel[(rows,)](numerator, total, out, cols, out_row_stride, BLOCK_SIZE=block_size)
