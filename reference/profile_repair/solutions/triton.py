"""RMSNorm of each head and rotary embedding in one kernel, the staff kernel.

A program takes a few tokens and up to 32 heads of each. Both halves of its heads are loaded as blocks of 64 columns, so
that the element and its partner of a rotation lie in the same thread; the tables are loaded once for all heads of a
token. It reads q once and writes out once.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _norm_rope_kernel(
    q_ptr,
    weight_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    tokens,
    heads,
    q_token_stride,
    eps,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
):
    token = tl.program_id(axis=0).to(tl.int64) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS)[:, None, None]
    head = tl.program_id(axis=1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)[None, :, None]
    pair = tl.arange(0, 64)[None, None, :]
    mask = (token < tokens) & (head < heads)
    place = token * q_token_stride + head * 128 + pair
    low = tl.load(q_ptr + place, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(q_ptr + place + 64, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + token * 64 + pair, mask=token < tokens, other=0.0)
    sin = tl.load(sin_ptr + token * 64 + pair, mask=token < tokens, other=0.0)
    low_weight = tl.load(weight_ptr + pair).to(tl.float32)
    high_weight = tl.load(weight_ptr + pair + 64).to(tl.float32)
    scale = tl.rsqrt(tl.sum(low * low + high * high, axis=2, keep_dims=True) / 128 + eps)
    low = low * scale * low_weight
    high = high * scale * high_weight
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
    block_heads = min(32, triton.next_power_of_2(heads))
    # A program wants 32 heads on a GPU; the interpreter pays per program, so there it takes many more.
    block_tokens = max(1, (32 if q.is_cuda else 1024) // block_heads)
    grid = (triton.cdiv(tokens, block_tokens), triton.cdiv(heads, block_heads))
    _norm_rope_kernel[grid](
        q, weight, cos, sin, out, tokens, heads, q_token_stride, eps,
        BLOCK_TOKENS=block_tokens, BLOCK_HEADS=block_heads, num_warps=4,
    )  # fmt: skip
