"""Does not load: the entry takes no tables."""

import torch


def norm_rope(q: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, tokens: int, heads: int, eps: float) -> None:
    out.copy_(q)
