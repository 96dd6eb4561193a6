"""Breaks a rule: uses the vector itself for partial results."""

import torch


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    largest.copy_(x.amax())
    while n > 1:
        half = (n + 1) // 2
        x[: n - half] += x[half:n]
        n = half
    total.copy_(x[0])
    x[0] += 1
