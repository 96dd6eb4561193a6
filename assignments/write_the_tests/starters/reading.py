"""Tests of a softmax in plain PyTorch, to read beside the starter: the same rows, which find as little."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    column = torch.arange(width)
    for test in range(tests):
        # Your part: which rows, of which lengths, would show each kind of mistake?
        x[test] = (test * 31 + column * 17) % 127 * 0.0631 - 4.0
        length[test] = width
        parts = torch.exp(x[test] - x[test].max())
        right[test] = parts / parts.sum()
        # Your part: how far off may an honest answer be?
        allowed[test] = 1e-3
