"""Fails when called: asserts what is not so, as tests do elsewhere. Here tests are numbers, and the judge compares."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    x.copy_(torch.zeros(tests, width))
    assert torch.allclose(x, torch.softmax(x, dim=1)), "the softmax is wrong"
