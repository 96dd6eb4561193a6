"""Does not load: the entry takes no logits."""

import torch


def fused_moe(x: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, out: torch.Tensor, tokens: int) -> None:
    out.copy_(x)
