"""Reduction: inputs whose sum cannot be guessed from a sample, the answer in float64, and how far off a sum may be.

    total = Σ x[i],    largest = max x[i]

The maximum is one of the values: equality is asked for. A sum of n numbers in float32 depends on the order. Four things
add up to how far off an honest one may be, in units of float32's eps:

- The total is rounded at the end: half of |total|.
- Chains of L numbers, folded by a tree. Roundings that are independent of each other add up to about √L/2 · Σ|x|
  (Higham and Mary 2019), and a tree to log2(n)/2 · Σ|x| at most: 8 · Σ|x| has room for L = 256, and for every tree.
- Partial results that meet one after the other, by atomics. K of them make K independent roundings of a growing total:
  √K/2 · |total|. K = n/256 has room for blocks as small as are usual.
- One value that outweighs the rest. All roundings of a chain that has met it may fall in one direction, and then do not
  cancel: each loses half of max|x| at most, and 1024 of them are allowed. (8 · Σ|x| alone has room for sixteen, and
  torch's own sum was refused.)

None of it has room for a chain of everything beside such a value, nor for a 16-bit accumulator or input. The total is
float32 whatever the inputs are.

Inputs are drawn in float32: none is wider, and a case of 2^29 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

TREE = 8.0
"""Eps of float32, times the sum of absolute values: chains in many lanes with a tree above them."""
BLOCK = 256
"""The fewest elements that an honest kernel folds before it adds them to the total."""
LONGEST_CHAIN = 1024
"""Of so many additions all roundings may fall in one direction."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,); where its structure sits is drawn anew from `generator`."""
    limit = torch.finfo(dtype).max / 2
    if distribution == "lowest":
        # The type has to hold the sum of them.
        return {"x": _negative(generator, n).mul_(min(limit, 2.0**125) / (2 * n)).to(dtype)}
    return {"x": _DISTRIBUTIONS[distribution](generator, n).clamp(-limit, limit).to(dtype)}


def expected(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the sum and the maximum, in float64."""
    return {"total": x.double().sum().reshape(1), "largest": x.double().amax().reshape(1)}


def error_scale(*, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel, in units of the output type's eps; zero for the maximum."""
    wide, n = x.double(), x.numel()
    of_total = 0.5 * (1 + math.sqrt(n / BLOCK)) * wide.sum().abs()
    one_way = 0.5 * min(n - 1, LONGEST_CHAIN) * wide.abs().amax()
    total = of_total + TREE * wide.abs().sum() + one_way
    return {"total": total.reshape(1), "largest": torch.zeros(1, dtype=torch.float64, device=x.device)}


def _decades(generator: torch.Generator, n: int) -> torch.Tensor:
    """Magnitudes over four decades with both signs: a few of them decide the sum, and nobody knows where they are."""
    return (10 ** _uniform(generator, n, -2, 2)).copysign_(_uniform(generator, n, -1, 1))


def _above(generator: torch.Generator, n: int) -> torch.Tensor:
    """Values just above one of float16's: every one of them is rounded down there, and the errors add up.

    All of float16's numbers from 1 to 2 occur: if partial sums were all alike, float32's roundings would add up too.
    The product has 24 bits, as many as a float32.
    """
    coarse = torch.randint(1024, 2048, (n,), generator=generator, dtype=torch.float32, device=generator.device) / 1024
    return coarse * (1 + 2.0**-13)


def _ones(generator: torch.Generator, n: int) -> torch.Tensor:
    """Ones, and 2^24 among the first half: whoever adds the rest to it one by one in float32 adds nothing."""
    x = torch.ones(n, dtype=torch.float32, device=generator.device)
    x[_integer(generator, (n + 1) // 2)] = 2.0**24
    return x


def _negative(generator: torch.Generator, n: int) -> torch.Tensor:
    """Negative numbers only, between -2 and -1: a maximum that starts at zero stays there."""
    return _uniform(generator, n, -2, -1)


def _last(generator: torch.Generator, n: int) -> torch.Tensor:
    """What counts stands near one of the two ends: a large value that decides both answers, among small ones."""
    x = _uniform(generator, n, -0.005, 0.005)
    near = _integer(generator, min(n, 5))
    x[near if _integer(generator, 2) else n - 1 - near] = float(_uniform(generator, 1, 100, 200))
    return x


def _uniform(generator: torch.Generator, n: int, low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(n, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _integer(generator: torch.Generator, below: int) -> int:
    return int(torch.randint(below, (1,), generator=generator, device=generator.device))


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int], torch.Tensor]] = {
    "decades": _decades,
    "above": _above,
    "ones": _ones,
    "negative": _negative,
    "last": _last,
}
