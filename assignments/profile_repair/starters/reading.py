"""Norm and rotation in plain PyTorch, to read beside the starter: program by program, and wrong in the same place."""

import torch


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
    # A torch tensor knows its strides, so q_token_stride is not used here. A kernel has only pointers, and needs it.
    # One program for each head of each token.
    for token in range(tokens):
        for head in range(heads):
            columns = slice(128 * head, 128 * head + 128)
            x = q[token, columns].float()
            y = x * torch.rsqrt((x * x).sum() / 128 + eps) * weight.float()
            # Your part: the rotation, with cos[token] and sin[token].
            out[token, columns] = y.to(out.dtype)
