"""Product of matrices: inputs in which every place counts, the answer in float64, and how far off float32 sums may be.

    c[i, j] = Σ_l a[i, l] · b[l, j]

Products are summed in float32, in any order, which is off by about (√k + 1)·eps32·Σ|a||b| at most (Higham and Mary
2019, "A new approach to probabilistic rounding error analysis"); the last rounding, to the output's own type, costs
eps/2 of |c|. Integers with Σ|a||b| below 2**24 are summed exactly, so there only the last rounding is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps
EXACT_BELOW = 2.0**24
APART = {"a": 0, "c": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, m: int, n: int, k: int
) -> dict[str, torch.Tensor]:
    """Return `a` of shape (m, k) and `b` of shape (k, n), whose product fits the type."""
    a, b = _DISTRIBUTIONS[distribution](generator, dtype, m, n, k)
    return {"a": a.to(dtype), "b": b.to(dtype)}


def expected(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the product in float64."""
    return {"c": a.double() @ b.double()}


def error_scale(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    finfo = torch.finfo(a.dtype)
    sizes = a.double().abs() @ b.double().abs()
    summing = (math.sqrt(a.shape[1]) + 1) * sizes * (FLOAT32_EPS / finfo.eps)
    if _whole(a) and _whole(b):
        summing = summing.masked_fill(sizes < EXACT_BELOW, 0.0)
    # Below the normal range of the type its spacing is absolute.
    return {"c": 0.5 * (a.double() @ b.double()).abs().clamp(min=finfo.tiny) + summing}


Pair = tuple[torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, _: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Rows of a, columns of b and places along k have scales over two decades each, in an order of this call's own."""
    along = _scales(generator, k)
    a = _normal(generator, m, k) * _scales(generator, m)[:, None] * (along / along.square().mean().sqrt())
    return a, _normal(generator, k, n) * _scales(generator, n) * (8 / math.sqrt(k))


def _positive(generator: torch.Generator, _: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Everything has one sign, so that sums grow along k and their last digits are all that tells them apart."""
    a = 1 + _unit(generator, m, k) * _scales(generator, m)[:, None] / 10
    return a, (1 + _unit(generator, k, n)) * (64 / k)


def _integers(generator: torch.Generator, dtype: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Integers whose sums float32 holds exactly, and nothing narrower does.

    a has twelve bits and is zero in half of k; in 16-bit types it has five, because nothing wider would fit them.
    """
    limit = 4095 if dtype == torch.float32 else 31
    a = _between(generator, -limit, limit, m, k)
    silent = torch.randperm(k, generator=generator, device=generator.device)[: k // 2]
    return a.index_fill(1, silent, 0.0), _between(generator, -2, 2, k, n)


def _picked(generator: torch.Generator, _: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Every row of a picks one row of b and doubles it up to three times: c can be read by eye.

    An entry of b is 100 times its row plus its column, both counted from 1, as long as these are small.
    """
    chosen = torch.randint(k, (m,), generator=generator, device=generator.device)
    factor = 2 ** _between(generator, 0, 3, m, 1)
    a = torch.zeros(m, k, dtype=torch.float64, device=generator.device).scatter(1, chosen[:, None], factor)
    row, column = (torch.arange(1, count + 1, dtype=torch.float64, device=generator.device) for count in (k, n))
    return a, (100 * row[:, None] + column) % 4093


def _special(generator: torch.Generator, dtype: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Rows of a that end in an infinity, have a NaN, or have one number alone: very large, or subnormal.

    b has 1, 2 and 3 with both signs: no product overflows, and none is infinity times zero.
    """
    info, row = torch.finfo(dtype), torch.arange(m, device=generator.device)
    telling = [torch.inf, torch.nan, info.max / 4, 64 * info.tiny * info.eps, 1.0]
    kind = torch.randperm(m, generator=generator, device=generator.device) % len(telling)
    place = torch.randint(k, (m,), generator=generator, device=generator.device)
    place[kind == 0] = k - 1
    a = _normal(generator, m, k)
    a[(kind > 1) & (kind < len(telling) - 1)] = 0
    a[row, place] = torch.tensor(telling, dtype=a.dtype, device=a.device)[kind]
    sign = 1 - 2 * _between(generator, 0, 1, k, n)
    return a, sign * _between(generator, 1, 3, k, n)


def _scales(generator: torch.Generator, count: int) -> torch.Tensor:
    """Powers of ten from -1 to 1, evenly spaced, in a random order."""
    exponents = torch.linspace(-1, 1, count, dtype=torch.float64, device=generator.device)
    return 10 ** exponents[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64, device=generator.device)


def _unit(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    return torch.rand(rows, columns, generator=generator, dtype=torch.float64, device=generator.device)


def _between(generator: torch.Generator, low: int, high: int, rows: int, columns: int) -> torch.Tensor:
    return torch.randint(low, high + 1, (rows, columns), generator=generator, device=generator.device).double()


def _whole(values: torch.Tensor) -> bool:
    return bool((values == values.round()).all())


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, torch.dtype, int, int, int], Pair]] = {
    "decades": _decades,
    "positive": _positive,
    "integers": _integers,
    "picked": _picked,
    "special": _special,
}
