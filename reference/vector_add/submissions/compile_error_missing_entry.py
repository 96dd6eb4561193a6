"""Does not load: there is no function of the entry's name."""

import torch


def add_vectors(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    out[:] = x + y
