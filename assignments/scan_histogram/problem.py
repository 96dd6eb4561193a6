"""Scan and histogram: inputs in which every element moves what comes after it, and how far off a prefix may be.

    prefix[i] = x[0] + … + x[i],    counts[v] = |{j : keys[j] = v}|

Counts are integers: equality is asked for. A prefix is a sum of i + 1 numbers in float32, and its error is a number of
roundings of partial sums, none of which is larger than A[i] = Σ_{j ≤ i} |x[j]|. A tree makes log2(i + 1) of them; a
tile that is added up in a chain of 32768 makes about √32768 / 2 that count, when they are independent (Higham and Mary
2019): 96 eps · A is room for that. Tiles that hand their prefix on, one to the next, make a chain of one addition a
tile; with a thousand elements or more in a tile, √(i / 1024) of these count. A chain of everything is far beyond,
and so is a 16-bit partial sum. Integers whose absolute values add up to less than 2^24 are exact in float32 in any
order.

Inputs are drawn in no wider a type than they have, since large ones are drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

BINS = 256
PIECE = 2**26
"""Keys that are counted at once."""
ROOM = 96.0
"""Eps of float32, times the sum of absolute values so far, for the sums inside of a tile."""
LEAST_TILE = 1024
"""Elements that a tile has at least where tiles are chained."""
FLOAT32_EPS = torch.finfo(torch.float32).eps
EXACT_BELOW = 2.0**24


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int, m: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,) and `keys` of shape (m,), uint8; no prefix leaves the type."""
    numbers, labels = _DISTRIBUTIONS[distribution]
    x = numbers(generator, n)
    largest = float(x.cumsum(0).abs().amax()) + float(x.abs().amax())
    limit = torch.finfo(dtype).max / 4
    if largest > limit:
        x = x * (limit / largest)
    return {"x": x.to(dtype), "keys": labels(generator, m).to(torch.uint8)}


def expected(*, x: torch.Tensor, keys: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the prefixes and the counts, in float64."""
    return {"prefix": x.double().cumsum(0), "counts": _counts(keys)}


def error_scale(*, x: torch.Tensor, keys: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel, in units of the output type's eps; zero for the counts."""
    wide = x.double()
    absolute = wide.abs().cumsum(0)
    finfo = torch.finfo(x.dtype)
    before = torch.arange(x.numel(), dtype=torch.float64, device=x.device)
    summing = (ROOM + (before / LEAST_TILE).sqrt()) * absolute * (FLOAT32_EPS / finfo.eps)
    if bool((wide == wide.round()).all()):
        summing = torch.where(absolute < EXACT_BELOW, 0.0, summing)
    rounding = 0.5 * wide.cumsum(0).abs().clamp(min=finfo.tiny)
    return {"prefix": rounding + summing, "counts": torch.zeros(BINS, dtype=torch.float64, device=keys.device)}


def _counts(keys: torch.Tensor) -> torch.Tensor:
    """How often each of 256 values occurs; a piece at a time, because torch counts 64-bit integers only."""
    counts = torch.zeros(BINS, dtype=torch.int64, device=keys.device)
    for start in range(0, keys.numel(), PIECE):
        counts += torch.bincount(keys[start : start + PIECE].long(), minlength=BINS)
    return counts.double()


def _decades(generator: torch.Generator, n: int) -> torch.Tensor:
    """Magnitudes over four decades with both signs."""
    return (10 ** (4 * _unit(generator, n) - 2)).copysign_(_unit(generator, n) - 0.5)


def _runs(generator: torch.Generator, n: int) -> torch.Tensor:
    """Signs in runs of random length: the prefix climbs and falls, and turns where nobody can tell."""
    turns = (_unit(generator, n) < 0.01).cumsum(0, dtype=torch.int32)
    return (1 - 2 * (turns % 2)) * (0.5 + _unit(generator, n))


def _integers(generator: torch.Generator, n: int) -> torch.Tensor:
    """Integers from -9 to 9: every prefix is exact in float32."""
    return torch.randint(-9, 10, (n,), generator=generator, dtype=torch.float32, device=generator.device)


def _above(generator: torch.Generator, n: int) -> torch.Tensor:
    """Magnitudes just above one of float16's, with both signs: in 16 bits the first prefix is wrong."""
    coarse = torch.randint(32, 64, (n,), generator=generator, dtype=torch.float32, device=generator.device) / 32
    return (coarse + 2.0**-12).copysign_(_unit(generator, n) - 0.5)


def _swamped(generator: torch.Generator, n: int) -> torch.Tensor:
    """2^24 among the first five, then 2^-7: added to it one by one they vanish, added up before they count."""
    x = torch.full((n,), 2.0**-7, dtype=torch.float32, device=generator.device)
    x[_integer(generator, min(n, 5))] = 2.0**24
    return x


def _ones(generator: torch.Generator, n: int) -> torch.Tensor:
    """Ones, but for a two at a random place: beyond 2^24 a float32 cannot count them one by one."""
    x = torch.ones(n, dtype=torch.float32, device=generator.device)
    x[_integer(generator, n)] = 2.0
    return x


def _skewed(generator: torch.Generator, m: int) -> torch.Tensor:
    """Few values have most of the keys, as in text; which ones is drawn."""
    rank = (BINS * _unit(generator, m) ** 4).long().clamp(max=BINS - 1)
    return torch.randperm(BINS, generator=generator, device=generator.device).to(torch.uint8)[rank]


def _uniform(generator: torch.Generator, m: int) -> torch.Tensor:
    """Every value equally often."""
    return torch.randint(BINS, (m,), generator=generator, dtype=torch.uint8, device=generator.device)


def _sorted(generator: torch.Generator, m: int) -> torch.Tensor:
    """Runs of equal keys: all threads of a warp count the same value at the same time."""
    return _skewed(generator, m).sort().values


def _sixteen(generator: torch.Generator, m: int) -> torch.Tensor:
    """Sixteen values only."""
    chosen = torch.randperm(BINS, generator=generator, device=generator.device)[:16]
    return chosen[torch.randint(16, (m,), generator=generator, device=generator.device)]


def _same(generator: torch.Generator, m: int) -> torch.Tensor:
    """One value, and another one at one of the two ends."""
    keys = torch.full((m,), _integer(generator, BINS), dtype=torch.uint8, device=generator.device)
    keys[0 if _integer(generator, 2) else m - 1] = _integer(generator, BINS)
    return keys


def _unit(generator: torch.Generator, n: int) -> torch.Tensor:
    return torch.rand(n, generator=generator, dtype=torch.float32, device=generator.device)


def _integer(generator: torch.Generator, below: int) -> int:
    return int(torch.randint(below, (1,), generator=generator, device=generator.device))


Maker = Callable[[torch.Generator, int], torch.Tensor]
_DISTRIBUTIONS: dict[str, tuple[Maker, Maker]] = {
    "decades": (_decades, _skewed),
    "runs": (_runs, _sorted),
    "integers": (_integers, _uniform),
    "above": (_above, _sixteen),
    "swamped": (_swamped, _same),
    "ones": (_ones, _same),
}
