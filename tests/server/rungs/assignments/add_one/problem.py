"""The maths of the assignment that the server's tests use."""

import torch


def make_inputs(*, generator, n, dtype, distribution):
    return (torch.randn(n, generator=generator).to(dtype),)


def expected(x):
    return (x.double() + 1,)
