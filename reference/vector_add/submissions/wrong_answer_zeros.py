"""Wrong: zeros."""

import torch


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    out.zero_()
