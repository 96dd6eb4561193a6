"""Does not load: the entry has another name."""

import torch


def add_and_norm(x: torch.Tensor, r: torch.Tensor, s: torch.Tensor) -> None:
    torch.add(x, r, out=s)
