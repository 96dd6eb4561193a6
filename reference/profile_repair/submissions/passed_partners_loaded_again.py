"""Right: whole rows of 128, and each element's partner by a second load from the other half, with a sign."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rows_kernel(q_ptr, weight_ptr, cos_ptr, sin_ptr, out_ptr, rows, heads, q_token_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, 128)[None, :]
    mask = row < rows
    token = row // heads
    begin = q_ptr + token * q_token_stride + row % heads * 128
    own = tl.load(begin + column, mask=mask, other=0.0).to(tl.float32)
    other = tl.load(begin + (column ^ 64), mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(own * own, axis=1) / 128 + eps)[:, None]
    own = own * scale * tl.load(weight_ptr + column).to(tl.float32)
    other = other * scale * tl.load(weight_ptr + (column ^ 64)).to(tl.float32)
    cos = tl.load(cos_ptr + token * 64 + column % 64, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + token * 64 + column % 64, mask=mask, other=0.0)
    turned = own * cos + tl.where(column < 64, -other, other) * sin
    tl.store(out_ptr + row * 128 + column, turned.to(out_ptr.dtype.element_ty), mask=mask)


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
    block = 8 if q.is_cuda else 512
    _rows_kernel[(triton.cdiv(rows, block),)](
        q, weight, cos, sin, out, rows, heads, q_token_stride, eps, BLOCK=block, num_warps=4
    )
