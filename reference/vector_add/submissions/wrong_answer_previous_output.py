"""Wrong: adds once per size and answers every later call of that size with the same sum.

It passes every check that repeats a call on the same inputs; timed calls get new inputs, and are checked too.
"""

import torch

_answers: dict[int, torch.Tensor] = {}


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    if n not in _answers:
        _answers[n] = x + y
    out.copy_(_answers[n])
