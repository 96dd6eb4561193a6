"""Breaks a rule: converts the input in place, and copies it to the output."""

import torch


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    x.mul_(1.8).add_(32.0)
    out.copy_(x)
