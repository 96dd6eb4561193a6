"""Two kernels, with the normalised heads in float32 between them: they go to memory and come back."""

import torch
import triton
import triton.language as tl


@triton.jit
def _norm_kernel(q_ptr, weight_ptr, y_ptr, rows, heads, q_token_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, 128)[None, :]
    mask = row < rows
    x = tl.load(q_ptr + row // heads * q_token_stride + row % heads * 128 + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / 128 + eps)
    tl.store(y_ptr + row * 128 + column, x * scale * tl.load(weight_ptr + column).to(tl.float32), mask=mask)


@triton.jit
def _rotate_kernel(y_ptr, cos_ptr, sin_ptr, out_ptr, rows, heads, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    pair = tl.arange(0, 64)[None, :]
    mask = row < rows
    low = tl.load(y_ptr + row * 128 + pair, mask=mask, other=0.0)
    high = tl.load(y_ptr + row * 128 + pair + 64, mask=mask, other=0.0)
    cos = tl.load(cos_ptr + row // heads * 64 + pair, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + row // heads * 64 + pair, mask=mask, other=0.0)
    tl.store(out_ptr + row * 128 + pair, (low * cos - high * sin).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + row * 128 + pair + 64, (high * cos + low * sin).to(out_ptr.dtype.element_ty), mask=mask)


def norm_rope(
    q: torch.Tensor,
    weight: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    out: torch.Tensor,
    tokens: int,
    heads: int,
    q_token_stride: int,
    eps: float,
) -> None:
    rows = tokens * heads
    y = torch.empty(rows, 128, dtype=torch.float32, device=q.device)
    # The interpreter pays per program.
    block = 32 if q.is_cuda else 1024
    grid = (triton.cdiv(rows, block),)
    _norm_kernel[grid](q, weight, y, rows, heads, q_token_stride, eps, BLOCK=block)
    _rotate_kernel[grid](y, cos, sin, out, rows, heads, BLOCK=block)
