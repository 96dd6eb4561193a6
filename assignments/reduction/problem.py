"""Reduction: inputs whose sum cannot be guessed from a sample, the answer in float64, and how far off a sum may be.

    total = Σ x[i],    largest = max x[i]

The maximum is one of the values: equality is asked for. A sum of n numbers in float32 depends on the order. Added in a
tree the error is at most log2(n) · eps/2 · Σ|x|; in chains of L numbers, with roundings that are independent of each
other, about √L · eps/2 · Σ|x| (Higham and Mary 2019). Eight eps times Σ|x| leaves room for chains of a few hundred and
for every tree, and none for a chain of all, nor for a 16-bit accumulator. The total is float32 whatever the inputs are.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

ROOM = 8.0
"""Eps of float32, times the sum of absolute values."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,); where its structure sits is drawn anew from `generator`."""
    limit = torch.finfo(dtype).max / 2
    return {"x": _DISTRIBUTIONS[distribution](generator, n).clamp(-limit, limit).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the sum and the maximum, in float64."""
    return {"total": x.double().sum().reshape(1), "largest": x.double().amax().reshape(1)}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel, in units of the output type's eps; zero for the maximum."""
    wide = x.double()
    total = 0.5 * wide.sum().abs() + ROOM * wide.abs().sum()
    return {"total": total.reshape(1), "largest": torch.zeros(1, dtype=torch.float64, device=x.device)}


def _decades(generator: torch.Generator, n: int) -> torch.Tensor:
    """Magnitudes over four decades with both signs: a few of them decide the sum, and nobody knows where they are."""
    exponent = 4 * _unit(generator, n) - 2
    return 10**exponent * (_unit(generator, n) - 0.5).sign()


def _above(generator: torch.Generator, n: int) -> torch.Tensor:
    """Values just above one of float16's: every one of them is rounded down there, and the errors add up."""
    coarse = torch.randint(32, 64, (n,), generator=generator, device=generator.device).double() / 32
    return coarse * (1 + 2.0**-13)


def _ones(generator: torch.Generator, n: int) -> torch.Tensor:
    """Ones, and 2^24 among the first half: whoever adds the rest to it one by one in float32 adds nothing."""
    x = torch.ones(n, dtype=torch.float64, device=generator.device)
    x[_integer(generator, (n + 1) // 2)] = 2.0**24
    return x


def _negative(generator: torch.Generator, n: int) -> torch.Tensor:
    """Negative numbers only, between -2 and -1: a maximum that starts at zero stays there."""
    return -1 - _unit(generator, n)


def _last(generator: torch.Generator, n: int) -> torch.Tensor:
    """What counts stands near one of the two ends: a large value that decides both answers, among small ones."""
    x = 0.01 * (_unit(generator, n) - 0.5)
    near = _integer(generator, min(n, 5))
    x[near if _integer(generator, 2) else n - 1 - near] = 100 + 100 * float(_unit(generator, 1))
    return x


def _unit(generator: torch.Generator, n: int) -> torch.Tensor:
    return torch.rand(n, generator=generator, dtype=torch.float64, device=generator.device)


def _integer(generator: torch.Generator, below: int) -> int:
    return int(torch.randint(below, (1,), generator=generator, device=generator.device))


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int], torch.Tensor]] = {
    "decades": _decades,
    "above": _above,
    "ones": _ones,
    "negative": _negative,
    "last": _last,
}
