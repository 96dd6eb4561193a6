"""Kernel C of "Profile and repair": right, and slow. The tokens go through one small kernel, a chunk at a time."""

import torch
import triton
import triton.language as tl

CHUNK = 344  # Tokens whose queries, with 32 heads in 16 bits, fit a corner of the L2 cache.


@triton.jit
def _norm_rope_kernel(q_ptr, weight_ptr, cos_ptr, sin_ptr, out_ptr, heads, q_token_stride, eps, BLOCK: tl.constexpr):
    token = tl.program_id(axis=0).to(tl.int64)
    head = tl.arange(0, BLOCK)[:, None]
    pair = tl.arange(0, 64)[None, :]
    mask = head < heads
    low = tl.load(q_ptr + token * q_token_stride + head * 128 + pair, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(q_ptr + token * q_token_stride + head * 128 + pair + 64, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(low * low + high * high, axis=1, keep_dims=True) / 128 + eps)
    low = low * scale * tl.load(weight_ptr + pair).to(tl.float32)
    high = high * scale * tl.load(weight_ptr + pair + 64).to(tl.float32)
    cos = tl.load(cos_ptr + token * 64 + pair)
    sin = tl.load(sin_ptr + token * 64 + pair)
    to = (token * heads + head) * 128 + pair
    tl.store(out_ptr + to, (low * cos - high * sin).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + to + 64, (high * cos + low * sin).to(out_ptr.dtype.element_ty), mask=mask)


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
    block = triton.next_power_of_2(heads)
    for first in range(0, tokens, CHUNK):
        part = slice(first, min(first + CHUNK, tokens))
        grid = (part.stop - part.start,)
        _norm_rope_kernel[grid](
            q[part], weight, cos[part], sin[part], out[part], heads, q_token_stride, eps, BLOCK=block, num_warps=4
        )
