"""Does not load: a bracket is never closed."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    right[:] = torch.softmax(x, dim=1
