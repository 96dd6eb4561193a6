"""Fails when called: the host function uses a name that nothing defines."""

import torch


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    grid = (triton.cdiv(n, 1024),)
    out[:] = x + y
