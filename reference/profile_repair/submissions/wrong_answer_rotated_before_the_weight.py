"""Wrong: turns first, and multiplies by the weight of where an element has come to."""

import torch
import triton
import triton.language as tl


@triton.jit
def _norm_rope_kernel(
    q_ptr, weight_ptr, cos_ptr, sin_ptr, out_ptr, rows, heads, q_token_stride, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    pair = tl.arange(0, 64)[None, :]
    mask = row < rows
    token = row // heads
    place = token * q_token_stride + row % heads * 128 + pair
    low = tl.load(q_ptr + place, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(q_ptr + place + 64, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + token * 64 + pair, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + token * 64 + pair, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(low * low + high * high, axis=1, keep_dims=True) / 128 + eps)
    first = (low * cos - high * sin) * scale * tl.load(weight_ptr + pair).to(tl.float32)
    second = (high * cos + low * sin) * scale * tl.load(weight_ptr + pair + 64).to(tl.float32)
    tl.store(out_ptr + row * 128 + pair, first.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + row * 128 + pair + 64, second.to(out_ptr.dtype.element_ty), mask=mask)


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
    # The interpreter pays per program.
    block = 16 if q.is_cuda else 1024
    grid = (triton.cdiv(rows, block),)
    _norm_rope_kernel[grid](q, weight, cos, sin, out, rows, heads, q_token_stride, eps, BLOCK=block)
