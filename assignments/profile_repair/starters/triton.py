"""RMSNorm of each head and rotary embedding: a program for each head of each token, and no rotation yet."""

import torch
import triton
import triton.language as tl


@triton.jit
def _norm_rope_kernel(
    q_ptr,  # the queries
    weight_ptr,  # the factor for each of the 128 elements of a head
    cos_ptr,  # cosines, 64 for each token
    sin_ptr,  # sines, 64 for each token
    out_ptr,  # where the result goes
    heads,  # how many heads a token has
    q_token_stride,  # elements from one token of q to the next
    eps,  # added to the mean of the squares, under the root
):
    # One program handles one head of one token.
    row = tl.program_id(axis=0).to(tl.int64)
    token = row // heads
    head = row % heads
    column = tl.arange(0, 128)

    x = tl.load(q_ptr + token * q_token_stride + head * 128 + column).to(tl.float32)
    weight = tl.load(weight_ptr + column).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / 128 + eps) * weight
    # Your part: the rotation. Element i of the first half meets element i of the second; should one thread have both?
    tl.store(out_ptr + row * 128 + column, y)


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
    # The judge calls this function. It writes its answer into `out`; what it returns is ignored.
    _norm_rope_kernel[(tokens * heads,)](q, weight, cos, sin, out, heads, q_token_stride, eps)
