"""Product with a transposed factor: inputs whose sums need float32, the answer in float64, and how far off it may be.

    c[i, j] = Σ_l a[i, l] · b[j, l]

Factors have 16 bits, so that every product of two is exact in float32; they are to be summed in float32. In any order
that costs about √k·eps·Σ|a||b| (Higham and Mary 2019, "A new approach to probabilistic rounding error analysis"), and
the rounding to the output's type eps/2 of that type, relative to c. Where all inputs are integers and Σ|a||b| stays
below 2**24, float32 is exact in any order, tensor cores included, and only the last rounding is left.

Inputs are drawn in float32: none is wider, and a case of 2^26 elements is drawn anew for every call that is timed.
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
    """Return `a` of shape (m, k) and `b` of shape (n, k); the product fits the type."""
    if distribution == "special":
        a, b = _special(generator, dtype, m, n, k)
    else:
        a, b = _DISTRIBUTIONS[distribution](generator, m, n, k)
    return {"a": a.to(dtype), "b": b.to(dtype)}


def expected(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the product with b transposed, in float64."""
    return {"c": a.double() @ b.double().T}


def error_scale(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    c = a.double() @ b.double().T
    absolute = a.double().abs() @ b.double().abs().T
    finfo = torch.finfo(a.dtype)
    rounding = 0.5 * c.abs().clamp(min=finfo.tiny)
    summing = (math.sqrt(a.shape[1]) + 1) * absolute * (FLOAT32_EPS / finfo.eps)
    if _is_integral(a) and _is_integral(b):
        summing = torch.where(absolute < EXACT_BELOW, 0.0, summing)
    return {"c": rounding + summing}


Pair = tuple[torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, m: int, n: int, k: int) -> Pair:
    """Scales over decades along rows of a, rows of b, and along K, each in a random order; |c| stays below 1e4."""
    along_k = _scales(generator, k)
    along_k = along_k / along_k.square().mean().sqrt()
    a = _normal(generator, m, k) * _scales(generator, m)[:, None] * along_k[None, :]
    b = _normal(generator, n, k) * _scales(generator, n)[:, None] * (16 / math.sqrt(k))
    return a, b


def _offset(generator: torch.Generator, m: int, n: int, k: int) -> Pair:
    """A common offset in every entry, so that the answer is large and its differences are small."""
    a, b = _decades(generator, m, n, k)
    return a / a.abs().amax() + 3, b / b.abs().amax() + (16 / k)


def _cancelling(generator: torch.Generator, m: int, n: int, k: int) -> Pair:
    """Integers, half of K in pairs whose products cancel: the sum on its way is large, what is left of it is small.

    Where the two of a pair are is drawn anew for every call. A sum that is kept in 16 bits loses what is left; one in
    float32 is exact.
    """
    a, b = _integers_between(generator, -3, 3, m, k), _integers_between(generator, -1, 1, n, k)
    order = torch.randperm(k, generator=generator, device=generator.device)
    one, other = order[: k // 4], order[k // 4 : 2 * (k // 4)]
    a[:, one] = a[:, other] = _integers_between(generator, -127, 127, m, k // 4)
    b[:, one] = _integers_between(generator, -31, 31, n, k // 4)
    b[:, other] = -b[:, one]
    return a, b


def _permutation(generator: torch.Generator, m: int, n: int, k: int) -> Pair:
    """`a` has a single power of two per row: row i of c is a column of b, scaled; easy to read when it is wrong."""
    chosen = torch.randperm(max(m, k), generator=generator, device=generator.device)[:m] % k
    a = torch.zeros(m, k, dtype=torch.float32, device=generator.device)
    a[torch.arange(m, device=generator.device), chosen] = _power_of_two(generator, m)
    b = (torch.arange(n * k, device=generator.device) % 2047).float().reshape(n, k) + 1
    return a, b


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
    sign = 1 - 2 * _integers_between(generator, 0, 1, n, k)
    return a, sign * _integers_between(generator, 1, 3, n, k)


def _scales(generator: torch.Generator, count: int) -> torch.Tensor:
    """Powers of ten from 0.1 to 10, evenly spread and in a random order."""
    exponents = torch.linspace(-1.0, 1.0, count, dtype=torch.float32, device=generator.device)
    return 10 ** exponents[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator, dtype=torch.float32, device=generator.device)


def _integers_between(generator: torch.Generator, low: int, high: int, rows: int, columns: int) -> torch.Tensor:
    return torch.randint(low, high + 1, (rows, columns), generator=generator, device=generator.device).float()


def _power_of_two(generator: torch.Generator, count: int) -> torch.Tensor:
    """1, 2, 4 or 8: shifted, because a power in float32 need not be exact on every device."""
    return (1 << torch.randint(4, (count,), generator=generator, device=generator.device)).float()


def _is_integral(values: torch.Tensor) -> bool:
    return bool((values == values.round()).all())


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int, int], Pair]] = {
    "decades": _decades,
    "offset": _offset,
    "cancelling": _cancelling,
    "permutation": _permutation,
}
