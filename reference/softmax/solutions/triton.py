"""Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].

Rows that fit a program's registers are read once and written once: 2·rows·cols·e bytes, the least there is. Longer rows
go through the online form: maximum m and sum s are carried over blocks of columns,

    m' = max(m, max(block)),    s' = s · exp(m - m') + Σ exp(block - m'),

so that the first pass needs one read, and a second writes the quotients: 3·rows·cols·e bytes. The second goes
backwards: what was read last is still in the L2 cache. Exponentials are taken in base 2, exp(x) = 2^(x · log2 e),
which is what the hardware has.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _softmax_short_kernel(
    x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLS)[None, :]
    mask = (row < rows) & (column < cols)
    # Lanes outside count as -inf; a row beyond the last is all -inf, so its maximum is replaced to keep NaN out.
    x = tl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=1, keep_dims=True)
    largest = tl.where(largest == -float("inf"), 0.0, largest)
    numerator = tl.exp2((x - largest) * LOG2_E)
    total = tl.sum(numerator, axis=1, keep_dims=True)
    out = numerator / tl.where(row < rows, total, 1.0)
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _softmax_online_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    # One running maximum and sum per lane: the loop has no reduction in it, the lanes meet once at the end.
    largest = tl.full((BLOCK_COLS,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_COLS,), tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        x = tl.load(x_ptr + column, mask=column < cols, other=-float("inf"), eviction_policy="evict_last")
        x = x.to(tl.float32)
        raised = tl.maximum(largest, x)
        # While a lane has seen -inf only, -inf - -inf must not become NaN.
        pivot = tl.where(raised == -float("inf"), 0.0, raised)
        total = total * tl.exp2((largest - pivot) * LOG2_E) + tl.exp2((x - pivot) * LOG2_E)
        largest = raised
    row_largest = tl.max(largest, axis=0)
    row_total = tl.sum(total * tl.exp2((largest - row_largest) * LOG2_E), axis=0)
    scale = 1.0 / row_total
    blocks = tl.cdiv(cols, BLOCK_COLS)
    for done in range(blocks):
        column = (blocks - 1 - done) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
        # Nobody reads it again, nor what is written here: neither should push out what others are to read.
        x = tl.load(x_ptr + column, mask=column < cols, other=-float("inf"), eviction_policy="evict_first")
        out = tl.exp2((x.to(tl.float32) - row_largest) * LOG2_E) * scale
        tl.store(out_ptr + column, out.to(out_ptr.dtype.element_ty), mask=column < cols, cache_modifier=".cs")


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    if cols > 16384:
        block_cols = 8192 if x.is_cuda else 16384
        _softmax_online_kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK_COLS=block_cols, num_warps=32)
        return
    block_cols = triton.next_power_of_2(cols)
    # A program wants about 4096 elements on a GPU; the interpreter pays per program, so there it takes many more.
    block_rows = max(1, (4096 if x.is_cuda else 65536) // block_cols)
    grid = (triton.cdiv(rows, block_rows),)
    warps = min(16, max(4, block_rows * block_cols // 512))
    _softmax_short_kernel[grid](
        x, out, rows, cols, x_row_stride, out_row_stride, BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, num_warps=warps
    )
