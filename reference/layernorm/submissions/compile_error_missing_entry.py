"""Does not load: the entry has another name."""

import torch


def layer_norm(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x)
