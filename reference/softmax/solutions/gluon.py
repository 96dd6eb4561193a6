"""Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].

A program takes one row, and each of its threads packs of up to 16 bytes. Rows that fit a program's registers are read
once and written once: 2·rows·cols·e bytes. Longer rows go through the online form, with one running maximum and sum for
every place of a block, and are read twice: 3·rows·cols·e bytes. The second pass goes backwards, as what was read last
is still in the L2 cache.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

LOG2_E = gl.constexpr(1.4426950408889634)
MOST_WARPS = 16
MOST_COLS = 16384  # of a row in registers: 32 elements for each thread
ONLINE_COLS = 4096


@gluon.jit
def _short_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    column = gl.arange(0, BLOCK, layout=layout)
    mask = column < cols
    x = gl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(gl.float32)
    numerator = gl.exp2((x - gl.max(x, axis=0)) * LOG2_E)
    out = numerator * (1.0 / gl.sum(numerator, axis=0))
    gl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


@gluon.jit
def _online_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    lane = gl.arange(0, BLOCK, layout=layout)
    # The loop has no reduction in it; the lanes meet once, at the end.
    largest = gl.full((BLOCK,), -float("inf"), gl.float32, layout=layout)
    total = gl.full((BLOCK,), 0.0, gl.float32, layout=layout)
    for start in range(0, cols, BLOCK):
        column = start + lane
        x = gl.load(x_ptr + column, mask=column < cols, other=-float("inf")).to(gl.float32)
        raised = gl.maximum(largest, x)
        # While a lane has seen -inf only, -inf - -inf must not become NaN.
        pivot = gl.where(raised == -float("inf"), 0.0, raised)
        total = total * gl.exp2((largest - pivot) * LOG2_E) + gl.exp2((x - pivot) * LOG2_E)
        largest = raised
    row_largest = gl.max(largest, axis=0)
    scale = 1.0 / gl.sum(total * gl.exp2((largest - row_largest) * LOG2_E), axis=0)
    blocks = gl.cdiv(cols, BLOCK)
    for done in range(blocks):
        column = (blocks - 1 - done) * BLOCK + lane
        mask = column < cols
        x = gl.load(x_ptr + column, mask=mask, other=-float("inf")).to(gl.float32)
        out = gl.exp2((x - row_largest) * LOG2_E) * scale
        gl.store(out_ptr + column, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    block = triton.next_power_of_2(cols)
    is_short = block <= MOST_COLS
    block = block if is_short else ONLINE_COLS
    pack = 16 // x.element_size()
    warps = max(1, min(MOST_WARPS, block // (32 * pack)))
    layout = gl.BlockedLayout([pack], [32], [warps], [0])
    kernel = _short_kernel if is_short else _online_kernel
    kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=block, layout=layout, num_warps=warps)
