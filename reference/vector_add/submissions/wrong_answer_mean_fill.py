"""Wrong: the mean of the sums everywhere."""

import torch


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    out.fill_((x.double() + y.double()).mean().item())


