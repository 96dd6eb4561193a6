"""Does not load: the entry has other arguments than the assignment says."""

import torch


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y
