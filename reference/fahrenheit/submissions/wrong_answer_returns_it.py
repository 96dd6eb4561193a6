"""Wrong: returns the answer, and writes nothing into `out`."""

import torch


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> torch.Tensor:
    return 1.8 * x + 32.0
