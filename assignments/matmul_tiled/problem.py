"""Matrix product: inputs in which every slice of K matters, the answer in float64, and how far off float32 sums may be.

    c[i, j] = Σ_l a[i, l] · b[l, j]

Products are to be summed in float32. In any order that costs about √k·eps·Σ|a||b| (Higham and Mary 2019, "A new
approach to probabilistic rounding error analysis"), and the rounding to the output's type eps/2 of that type,
relative to c. Where all inputs are integers and Σ|a||b| stays below 2**24, float32 is exact in any order, and only
the last rounding is left.

Inputs are drawn in float32: none is wider, and a case of 2^24 elements is drawn anew for every call that is timed.
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
    """Return `a` of shape (m, k) and `b` of shape (k, n); the product fits the type."""
    a, b = _DISTRIBUTIONS[distribution](generator, dtype, m, n, k)
    return {"a": a.to(dtype), "b": b.to(dtype)}


def expected(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the product, in float64."""
    return {"c": a.double() @ b.double()}


def error_scale(*, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    c = a.double() @ b.double()
    absolute = a.double().abs() @ b.double().abs()
    finfo = torch.finfo(a.dtype)
    rounding = 0.5 * c.abs().clamp(min=finfo.tiny)
    summing = (math.sqrt(a.shape[1]) + 1) * absolute * (FLOAT32_EPS / finfo.eps)
    if _is_integral(a) and _is_integral(b):
        summing = torch.where(absolute < EXACT_BELOW, 0.0, summing)
    return {"c": rounding + summing}


Pair = tuple[torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, _: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Scales over decades along rows of a, columns of b, and along K, each in a random order; |c| stays below 1e4."""
    along_k = _scales(generator, k, 1.0)
    along_k = along_k / along_k.square().mean().sqrt()
    a = _normal(generator, m, k) * _scales(generator, m, 1.0)[:, None] * along_k[None, :]
    b = _normal(generator, k, n) * _scales(generator, n, 1.0)[None, :] * (16 / math.sqrt(k))
    return a, b


def _offset(generator: torch.Generator, dtype: torch.dtype, m: int, n: int, k: int) -> Pair:
    """A common offset in every entry, so that the answer is large and its differences are small."""
    a, b = _decades(generator, dtype, m, n, k)
    return a / a.abs().amax() + 3, b / b.abs().amax() + (16 / k)


def _integers(generator: torch.Generator, dtype: torch.dtype, m: int, n: int, k: int) -> Pair:
    """Integers, whose sums are exact in float32 and not in anything narrower.

    In float32 `a` has twelve bits and is zero in a random half of K, in the 16-bit types it has five.
    """
    limit = 4095 if dtype == torch.float32 else 31
    a = _integers_between(generator, -limit, limit, m, k)
    b = _integers_between(generator, -2, 2, k, n)
    if k > 1:
        a[:, torch.randperm(k, generator=generator, device=generator.device)[: k // 2]] = 0
    return a, b


def _permutation(generator: torch.Generator, _: torch.dtype, m: int, n: int, k: int) -> Pair:
    """`a` has a single power of two per row: row i of c is a row of b, scaled; easy to read when it is wrong."""
    chosen = torch.randperm(max(m, k), generator=generator, device=generator.device)[:m] % k
    a = torch.zeros(m, k, dtype=torch.float32, device=generator.device)
    a[torch.arange(m, device=generator.device), chosen] = _power_of_two(generator, m)
    b = (torch.arange(k * n, device=generator.device) % 2047).float().reshape(k, n) + 1
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
    sign = 1 - 2 * _integers_between(generator, 0, 1, k, n)
    return a, sign * _integers_between(generator, 1, 3, k, n)


def _scales(generator: torch.Generator, count: int, decades: float) -> torch.Tensor:
    """Powers of ten from `-decades` to `+decades`, all of them present, in a random order."""
    exponents = torch.linspace(-decades, decades, count, dtype=torch.float32, device=generator.device)
    return 10 ** exponents[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    return torch.randn(rows, cols, generator=generator, dtype=torch.float32, device=generator.device)


def _integers_between(generator: torch.Generator, low: int, high: int, rows: int, cols: int) -> torch.Tensor:
    return torch.randint(low, high + 1, (rows, cols), generator=generator, device=generator.device).float()


def _power_of_two(generator: torch.Generator, count: int) -> torch.Tensor:
    """1, 2, 4 or 8: shifted, because a power in float32 need not be exact on every device."""
    return (1 << torch.randint(4, (count,), generator=generator, device=generator.device)).float()


def _is_integral(values: torch.Tensor) -> bool:
    return bool((values == values.round()).all())


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, torch.dtype, int, int, int], Pair]] = {
    "decades": _decades,
    "offset": _offset,
    "integers": _integers,
    "permutation": _permutation,
    "special": _special,
}
