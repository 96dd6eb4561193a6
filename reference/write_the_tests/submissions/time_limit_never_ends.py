"""Never ends: draws rows until one is found that sums to exactly 1 in another order, which there is none."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    total = torch.zeros(())
    while total != total + 1:
        total = torch.rand(width).sum()
    length.zero_()
