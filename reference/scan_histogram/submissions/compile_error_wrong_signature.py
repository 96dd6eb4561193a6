"""Does not load: the entry takes no keys."""

import torch


def scan_histogram(x: torch.Tensor, prefix: torch.Tensor, n: int) -> None:
    prefix.copy_(torch.cumsum(x, 0))
