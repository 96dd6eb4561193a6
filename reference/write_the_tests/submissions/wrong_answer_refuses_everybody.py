"""A cheat: every answer is refused, so every mutant is; and every honest one."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    x.zero_()
    length.fill_(width)
    right.fill_(torch.nan)
    allowed.fill_(-1.0)
