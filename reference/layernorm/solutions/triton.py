"""LayerNorm and RMSNorm over rows, the staff kernel.

    out[i, j] = (x[i, j] - m[i]) / sqrt(v[i] + eps) · weight[j] + bias[j],    v[i] = mean of (x[i, :] - m[i])²

where m[i] is the mean of the row if `center` is 1, and 0 if it is 0. Rows that fit a program's registers are read once
and written once, 2·rows·cols·e bytes: the mean first, then the squares of what is left, both from registers. Longer
rows are read twice. Their first pass carries the mean m and the sum of squares q about it over blocks of columns; a
block of k columns with mean b and sum of squares p joins n earlier columns with d = b - m as

    m' = m + d · k/(n + k),    q' = q + p + d² · n · k/(n + k).

Source of the merge: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979; of RMSNorm: Zhang and Sennrich, "Root mean square layer normalization", 2019 (arXiv:1910.07467).
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _short_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    rows,
    cols,
    x_row_stride,
    out_row_stride,
    eps,
    center,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLS)[None, :]
    inside = column < cols
    mask = (row < rows) & inside
    x = tl.load(x_ptr + row * x_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / cols
    mean = tl.where(center != 0, mean, 0.0)
    # Lanes beyond the last column would bring mean² each.
    centered = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=1, keep_dims=True) / cols
    scale = tl.rsqrt(variance + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    out = centered * scale * weight + bias
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _long_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    cols,
    x_row_stride,
    out_row_stride,
    eps,
    center,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    mean = 0.0
    squares = 0.0
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        x = tl.load(x_ptr + column, mask=column < cols, other=0.0).to(tl.float32)
        count = tl.minimum(cols - start, BLOCK_COLS).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / count
        centered = tl.where(column < cols, x - block_mean, 0.0)
        share = count / (start + count)
        apart = block_mean - mean
        squares += tl.sum(centered * centered, axis=0) + apart * apart * (start * share)
        mean += apart * share
    # About zero instead of the mean, the mean of the squares is larger by mean².
    variance = squares / cols + tl.where(center != 0, 0.0, mean * mean)
    mean = tl.where(center != 0, mean, 0.0)
    scale = tl.rsqrt(variance + eps)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        inside = column < cols
        x = tl.load(x_ptr + column, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + column, out.to(out_ptr.dtype.element_ty), mask=inside)


def layernorm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    out_row_stride: int,
    eps: float,
    center: int,
) -> None:
    if cols > 16384:
        _long_kernel[(rows,)](
            x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center, BLOCK_COLS=8192, num_warps=16
        )
        return
    block_cols = triton.next_power_of_2(cols)
    # A program wants about 4096 elements on a GPU; the interpreter pays per program, so there it takes many more.
    block_rows = max(1, (4096 if x.is_cuda else 65536) // block_cols)
    warps = min(8, max(4, block_rows * block_cols // 512))
    _short_kernel[(triton.cdiv(rows, block_rows),)](
        x,
        weight,
        bias,
        out,
        rows,
        cols,
        x_row_stride,
        out_row_stride,
        eps,
        center,
        BLOCK_ROWS=block_rows,
        BLOCK_COLS=block_cols,
        num_warps=warps,
    )
