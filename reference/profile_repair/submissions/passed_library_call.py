"""Right, and not the exercise: torch's operators. It passes, and staff are shown what ran."""

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
    wide = q.double().reshape(tokens, heads, 128)
    y = wide * torch.rsqrt(wide.square().mean(dim=2, keepdim=True) + eps) * weight.double()
    low, high = y[..., :64], y[..., 64:]
    c, s = cos.double()[:, None], sin.double()[:, None]
    out.copy_(torch.cat([low * c - high * s, high * c + low * s], dim=2).view(tokens, heads * 128))
