"""Fails when called: the host function uses a name that nothing defines."""

import torch


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    out[:] = FACTOR * x + 32.0
