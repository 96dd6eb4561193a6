"""Does not load: a bracket is never closed."""

import torch


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    out[:] = (1.8 * x + 32.0
