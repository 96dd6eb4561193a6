"""Operator-library style: contiguous input, one block for a usual row, two loops for a very long one."""

import torch
import triton
import triton.language as tl

MAX_FUSED_SIZE = 16384


def calculate_settings(n_cols):
    block_size = triton.next_power_of_2(n_cols)
    num_warps = 4
    if block_size >= 16384:
        num_warps = 32
    elif block_size >= 8192:
        num_warps = 16
    elif block_size >= 2048:
        num_warps = 8
    return block_size, num_warps


@triton.jit
def _softmax_single_block_kernel(Y_ptr, Y_row_stride, X_ptr, X_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_id = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(X_ptr + row_id * X_row_stride + offs, mask=mask, other=-float("inf"), cache_modifier=".ca").to(
        tl.float32
    )
    m = tl.max(x, axis=0)
    e = tl.exp(x - m)
    d = tl.sum(e, axis=0)
    y = e / d
    tl.store(Y_ptr + row_id * Y_row_stride + offs, y.to(Y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _softmax_multi_block_kernel(Y_ptr, Y_row_stride, X_ptr, X_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_id = tl.program_id(0).to(tl.int64)
    X_ptr += row_id * X_row_stride
    Y_ptr += row_id * Y_row_stride
    offs = tl.arange(0, BLOCK_SIZE)

    m = tl.full((), -float("inf"), tl.float32)
    d = tl.zeros((), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_SIZE):
        idx = start + offs
        x = tl.load(X_ptr + idx, mask=idx < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        # A block of nothing but -inf may come before anything finite was seen.
        safe = tl.where(m_new == -float("inf"), 0.0, m_new)
        d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)
        m = m_new

    for start in tl.range(0, n_cols, BLOCK_SIZE):
        idx = start + offs
        mask = idx < n_cols
        x = tl.load(X_ptr + idx, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - m) / d
        tl.store(Y_ptr + idx, y.to(Y_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    x = x.contiguous()
    if cols <= MAX_FUSED_SIZE:
        BLOCK_SIZE, num_warps = calculate_settings(cols)
        _softmax_single_block_kernel[(rows,)](
            out, out_row_stride, x, x.stride(0), cols, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps
        )
    else:
        _softmax_multi_block_kernel[(rows,)](out, out_row_stride, x, x.stride(0), cols, BLOCK_SIZE=8192, num_warps=16)
