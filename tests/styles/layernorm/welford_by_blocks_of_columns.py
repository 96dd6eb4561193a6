"""Welford's algorithm by blocks of columns, each of which is merged into what came before."""

import torch
import triton
import triton.language as tl


@triton.jit
def _welford_norm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    cols,
    x_stride,
    out_stride,
    eps,
    CENTER: tl.constexpr,
    ONE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    out_ptr += row * out_stride
    lane = tl.arange(0, BLOCK)

    if ONE_BLOCK:
        inside = lane < cols
        x = tl.load(x_ptr + lane, mask=inside, other=0.0).to(tl.float32)
        if CENTER:
            mean = tl.sum(x, axis=0) / cols
            x = tl.where(inside, x - mean, 0.0)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / cols + eps)
        w = tl.load(w_ptr + lane, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + lane, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + lane, (x * rstd * w + b).to(out_ptr.dtype.element_ty), mask=inside)
    else:
        mean = 0.0
        squares = 0.0
        for start in range(0, cols, BLOCK):
            inside = start + lane < cols
            x = tl.load(x_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            if CENTER:
                here = tl.minimum(cols - start, BLOCK).to(tl.float32)
                before = start * 1.0
                block_mean = tl.sum(x, axis=0) / here
                away = tl.where(inside, x - block_mean, 0.0)
                delta = block_mean - mean
                share = here / (before + here)
                mean += delta * share
                squares += tl.sum(away * away, axis=0) + delta * delta * before * share
            else:
                squares += tl.sum(x * x, axis=0)
        rstd = 1.0 / tl.sqrt(squares / cols + eps)
        for start in range(0, cols, BLOCK):
            inside = start + lane < cols
            x = tl.load(x_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            b = tl.load(b_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            y = (x - mean) * rstd * w + b
            tl.store(out_ptr + start + lane, y.to(out_ptr.dtype.element_ty), mask=inside)


def layernorm(x, weight, bias, out, rows, cols, x_row_stride, out_row_stride, eps, center):
    block = min(triton.next_power_of_2(cols), 8192)
    _welford_norm_kernel[(rows,)](
        x,
        weight,
        bias,
        out,
        cols,
        x_row_stride,
        out_row_stride,
        eps,
        CENTER=center == 1,
        ONE_BLOCK=block >= cols,
        BLOCK=block,
        num_warps=min(16, max(4, block // 512)),
    )
