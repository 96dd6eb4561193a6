"""Breaks a rule: adds in place, so that x holds the sum too."""

import torch


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    x += y
    out[:] = x
