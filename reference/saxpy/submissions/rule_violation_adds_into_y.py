"""Breaks a rule: BLAS overwrites y, this exercise does not."""

import torch

def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    y.add_(x, alpha=a)
    out.copy_(y)
