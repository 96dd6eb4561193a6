"""Does not load: the function is called sum_and_max."""

import torch


def sum_and_max(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    total.copy_(x.sum())
