"""Right: a program for each token, which takes its heads one after the other and keeps the tables in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def _token_kernel(q_ptr, weight_ptr, cos_ptr, sin_ptr, out_ptr, heads, q_token_stride, eps):
    token = tl.program_id(axis=0).to(tl.int64)
    pair = tl.arange(0, 64)
    cos = tl.load(cos_ptr + token * 64 + pair)
    sin = tl.load(sin_ptr + token * 64 + pair)
    low_weight = tl.load(weight_ptr + pair).to(tl.float32)
    high_weight = tl.load(weight_ptr + 64 + pair).to(tl.float32)
    for head in range(heads):
        first = q_ptr + token * q_token_stride + head * 128 + pair
        low = tl.load(first).to(tl.float32)
        high = tl.load(first + 64).to(tl.float32)
        scale = 1.0 / tl.sqrt((tl.sum(low * low, axis=0) + tl.sum(high * high, axis=0)) * (1.0 / 128) + eps)
        a = low * low_weight * scale
        b = high * high_weight * scale
        to = out_ptr + (token * heads + head) * 128 + pair
        tl.store(to, a * cos - b * sin)
        tl.store(to + 64, b * cos + a * sin)


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
    _token_kernel[(tokens,)](q, weight, cos, sin, out, heads, q_token_stride, eps, num_warps=1)
