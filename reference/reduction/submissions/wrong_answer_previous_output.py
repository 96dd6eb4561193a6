"""Wrong: reduces once per size, and answers every later call of that size with the same numbers."""

import torch

_answers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    if n not in _answers:
        _answers[n] = (x.float().sum(), x.amax())
    total.copy_(_answers[n][0])
    largest.copy_(_answers[n][1])
