"""Vector addition: inputs with structure, and the one right answer.

Two numbers of one floating-point type, added in float64 and rounded once to their own type, give the correctly rounded
sum, and so does a machine that adds in the type itself (or in float32, for the 16-bit types: 24 ≥ 2 · 11 + 2 bits, so
that rounding twice changes nothing). The exercise therefore asks for equality, bit for bit.

Inputs are drawn in float32: none is wider, and a case of 2^27 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

APART = {"x": 0, "y": 0, "out": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` and `y` of shape (n,); where their structure sits is drawn anew from `generator`."""
    if distribution in {"special", "subnormal"}:
        return _special(generator, n, dtype, subnormal=distribution == "subnormal")
    x, y = _DISTRIBUTIONS[distribution](generator, n)
    return {"x": x.to(dtype), "y": y.to(dtype)}


def expected(*, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the correctly rounded sum, as float64."""
    return {"out": (x.double() + y.double()).to(x.dtype).double()}


def error_scale(*, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return zeros: nothing but the correctly rounded sum is right."""
    return {"out": torch.zeros_like(x, dtype=torch.float64) * y.shape[0]}


Pair = tuple[torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, n: int) -> Pair:
    """Magnitudes from 1e-4 to 1e4 with both signs: no fixed value is close to many sums."""
    return _signed_decades(generator, n), _signed_decades(generator, n)


def _cancelling(generator: torch.Generator, n: int) -> Pair:
    """`y` is nearly `-x`, so that the sum shows what a lower precision threw away."""
    x = _signed_decades(generator, n)
    return x, -x * (1 + 0.02 * _uniform(generator, n, -1, 1))


def _offset(generator: torch.Generator, n: int) -> Pair:
    """Large offsets of opposite sign around small values."""
    return 1e4 + 50 * _uniform(generator, n, -1, 1), -1e4 + 50 * _uniform(generator, n, -1, 1)


def _runs(generator: torch.Generator, n: int) -> Pair:
    """Runs of zeros and of equal values at a random place: an element taken from a neighbour shows at their ends."""
    step = torch.arange(n, device=generator.device) // max(1, n // 7)
    x = torch.where(step % 2 == 0, 0.0, 8.0 + step).roll(_integer(generator, n))
    return x, (0.5 * step).roll(_integer(generator, n))


def _infinities(generator: torch.Generator, n: int) -> Pair:
    """A few infinities among ordinary values, in `x` only: infinity plus anything finite stays infinity."""
    x, y = _decades(generator, n)
    where = torch.randperm(n, generator=generator, device=generator.device)[: max(1, n // 50)]
    x[where] *= torch.inf
    return x, y


def _special(generator: torch.Generator, n: int, dtype: torch.dtype, *, subnormal: bool) -> dict[str, torch.Tensor]:
    """Pairs whose sum has a rule of its own, in random order: signed zeros, inf - inf, overflow, subnormals.

    Those are for devices only: XLA takes them for zeros on a processor.
    """
    info = torch.finfo(dtype)
    least = info.tiny * info.eps
    x = [-0.0, 0.0, torch.inf, info.max, info.min, info.max, -1.0]
    y = [-0.0, -0.0, -torch.inf, info.max, info.min, info.min, 1.0]
    if subnormal:
        x += [least, info.tiny]
        y += [3 * least, -2 * least]
    which = torch.randint(len(x), (n,), generator=generator, device=generator.device)
    pairs = torch.tensor([x, y], dtype=torch.float64, device=generator.device)[:, which].to(dtype)
    return {"x": pairs[0].contiguous(), "y": pairs[1].contiguous()}


def _signed_decades(generator: torch.Generator, n: int) -> torch.Tensor:
    return (10 ** _uniform(generator, n, -4, 4)).copysign_(_uniform(generator, n, -1, 1))


def _uniform(generator: torch.Generator, n: int, low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(n, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _integer(generator: torch.Generator, n: int) -> int:
    return int(torch.randint(n, (1,), generator=generator, device=generator.device))


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int], Pair]] = {
    "decades": _decades,
    "cancelling": _cancelling,
    "offset": _offset,
    "runs": _runs,
    "infinities": _infinities,
}
