"""The maths of the assignment that the server's tests use."""


def make_inputs(*, generator, n, dtype, distribution):
    import torch

    return (torch.randn(n, generator=generator).to(dtype),)


def expected(x):
    return (x.double() + 1,)
