"""Wrong: works once per size, and answers every later call of that size with the same numbers."""

import torch

_answers: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    if (n, m) not in _answers:
        _answers[n, m] = (torch.cumsum(x.float(), 0), torch.bincount(keys.int(), minlength=256))
    prefix.copy_(_answers[n, m][0])
    counts.copy_(_answers[n, m][1])
