"""Bias, GELU and dropout: inputs with structure, the answer in float64, and how far off an honest kernel may be.

    v = x[i, j] + bias[j],    out[i, j] = keep · v · Φ(v) / (1 - p),    mask[i, j] = keep

Φ is the normal distribution function. Element e = i·cols + j is kept if its number is not less than p·65536. Its number
is a half of a word of Philox4x32-10 with the key `seed`: pack e // 8 is the counter (its first word; the others are 0),
and the four words, low half before high half, are the numbers of the pack's eight elements.

Honest kernels compute in float32. With u = eps32/2, v is off by u·|v|, which moves v·Φ(v) by at most 1.13·u·|v|; Φ by
way of 1 + erf(v/√2) or of a short formula is off by up to four u whatever its size, which costs 4·u·|v|; the products
and 1/(1 - p) cost three roundings of the result. Together, and with the rounding to the output's own type,

    |error| ≤ (3·|v| + 1.5·|v·Φ(v)|) · eps32/(1 - p) + |out| · eps/2

Source of the generator: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Inputs are drawn in float32: none is wider, and a case of 2^28 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps
APART = {"x": 0, "out": 0, "mask": 0}
PACK = 8
"""Elements that share a counter."""
NUMBERS = 1 << 16
"""How many numbers there are: those of 16 bits."""

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` (rows, cols) and `bias` (cols,), `p` (float32) and `seed` (int64) without dimensions."""
    if distribution == "extreme":
        x, bias = _extreme(generator, rows, cols, dtype)
    else:
        x, bias = _tensors(generator, rows, cols, distribution)
    seed = torch.randint(2**63 - 1, (), generator=generator, device=generator.device)
    p = _PROBABILITIES[distribution](generator, seed, rows * cols)
    return {"x": x.to(dtype), "bias": bias.to(dtype), "p": p.float(), "seed": seed}


def expected(
    *, x: torch.Tensor, bias: torch.Tensor, p: torch.Tensor, seed: torch.Tensor, at: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """Return `out` and `mask`, 0 or 1, in float64; x has the rows `at`."""
    v = x.double() + bias.double()
    keep = _kept(p, seed, x, at).double()
    return {"out": v * torch.special.ndtr(v) * keep * _scale(p), "mask": keep}


def error_scale(
    *, x: torch.Tensor, bias: torch.Tensor, p: torch.Tensor, seed: torch.Tensor, at: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps; a mask has none."""
    v = x.double() + bias.double()
    gelu = v * torch.special.ndtr(v)
    finfo = torch.finfo(x.dtype)
    factor = _kept(p, seed, x, at) * _scale(p)
    # Below the normal range of the type its spacing is absolute.
    rounding = 0.5 * (gelu * factor).abs().clamp(min=finfo.tiny)
    summing = (3 * v.abs() + 1.5 * gelu.abs()) * factor * (FLOAT32_EPS / finfo.eps)
    return {"out": rounding + summing, "mask": torch.zeros_like(v)}


def numbers(seed: torch.Tensor, count: int) -> torch.Tensor:
    """The 16-bit numbers of the elements 0 to `count` - 1, as int64, on the device of `seed`."""
    return _numbers_of(seed, torch.arange((count + PACK - 1) // PACK, device=seed.device))[:count]


def _numbers_of(seed: torch.Tensor, packs: torch.Tensor) -> torch.Tensor:
    """The numbers of these packs, one after the other."""
    words = philox(packs, int(seed) & _WORD, int(seed) >> 32 & _WORD)
    halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]
    return torch.stack(halves, dim=-1).flatten()


def philox(counter: torch.Tensor, low: int, high: int) -> tuple[torch.Tensor, ...]:
    """The four words that Philox4x32-10 makes of the counters (c, 0, 0, 0) under the key (low, high), as int64."""
    zero = torch.zeros_like(counter)
    words = (counter & _WORD, zero, zero, zero)
    for _ in range(_ROUNDS):
        first_high, first_low = _product(_MULTIPLIERS[0], words[0])
        second_high, second_low = _product(_MULTIPLIERS[1], words[2])
        words = (second_high ^ words[1] ^ low, second_low, first_high ^ words[3] ^ high, first_low)
        low, high = low + _KEY_STEPS[0] & _WORD, high + _KEY_STEPS[1] & _WORD
    return words


def _product(multiplier: int, word: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The upper and the lower 32 bits of a product of 32-bit words, by halves: int64 has no room for all 64 bits."""
    upper, lower = multiplier * (word >> 16), multiplier * (word & 0xFFFF)
    return upper + (lower >> 16) >> 16, (upper << 16 & _WORD) + lower & _WORD


def _kept(p: torch.Tensor, seed: torch.Tensor, x: torch.Tensor, at: torch.Tensor | None) -> torch.Tensor:
    """Which elements of `x`, the rows `at` or all of them, are kept; p·65536 is exact in float64."""
    if at is None:
        found = numbers(seed, x.numel()).reshape(x.shape)
    else:
        # A row may begin within a pack, so that it lies in one more than it fills.
        (rows, cols), first = x.shape, at * x.shape[1]
        packs = (first // PACK)[:, None] + torch.arange(cols // PACK + 2, device=x.device)
        places = (first % PACK)[:, None] + torch.arange(cols, device=x.device)
        found = _numbers_of(seed, packs.flatten()).reshape(rows, -1).gather(1, places)
    return found.double() >= p.double() * NUMBERS


def _scale(p: torch.Tensor) -> float:
    """By what kept elements are multiplied; where nothing is kept, zero."""
    return 1 / (1 - float(p)) if float(p) < 1 else 0.0


def _tensors(generator: torch.Generator, rows: int, cols: int, distribution: str) -> tuple[torch.Tensor, torch.Tensor]:
    """`x` and `bias` whose sums lie between -7 and 7, below -1 where `tails`, and far out where `large`.

    A third of the columns has a bias that nearly cancels x, so that the sum shows what was thrown away before it; the
    others have a bias of their own, and rows have scales over a decade. Which is which is drawn anew in every call.
    """
    wanted = _SUMS.get(distribution, _spread)(generator, rows, cols)
    bias = _uniform(generator, (cols,), -1.5, 1.5)
    cancelling = torch.randperm(cols, generator=generator, device=generator.device) % 3 == 0
    bias = torch.where(cancelling, bias * 16, bias)
    return wanted - bias, bias


def _spread(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Values up to 6.5 with either sign, in rows whose scales reach from a tenth of that to all of it."""
    exponents = torch.linspace(-1, 0, rows, dtype=torch.float32, device=generator.device)
    scales = 10 ** exponents[torch.randperm(rows, generator=generator, device=generator.device)]
    return _uniform(generator, (rows, cols), -6.5, 6.5).mul_(scales[:, None])


def _below(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Values from -6.5 to -1, where GELU is small and has its digits."""
    return _uniform(generator, (rows, cols), -6.5, -1.0)


def _far(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Magnitudes from 3 to 250 with either sign: where GELU is nothing or all of it, a formula may be infinite."""
    magnitudes = 10 ** _uniform(generator, (rows, cols), 0.5, 2.4)
    return magnitudes.copysign_(_uniform(generator, (rows, cols), -1, 1))


def _extreme(generator: torch.Generator, rows: int, cols: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Subnormal numbers, some whose squares overflow, and up to an eighth of the largest, of either sign; no bias.

    Beside the large ones a bias is nothing, and beside a subnormal number it would be all.
    """
    info = torch.finfo(dtype)
    telling = torch.tensor([info.tiny / 16, info.max / 8, info.max**0.75, info.max**0.6, 5.0], device=generator.device)
    which = torch.randint(len(telling), (rows, cols), generator=generator, device=generator.device)
    x = telling[which].copysign_(_uniform(generator, (rows, cols), -1, 1))
    return x, torch.zeros(cols, dtype=torch.float32, device=generator.device)


def _any(generator: torch.Generator, _: torch.Tensor, __: int) -> torch.Tensor:
    return _uniform(generator, (), 0.05, 0.75)


def _tenth(generator: torch.Generator, _: torch.Tensor, __: int) -> torch.Tensor:
    return torch.tensor(0.1, dtype=torch.float64, device=generator.device)


def _zero(generator: torch.Generator, _: torch.Tensor, __: int) -> torch.Tensor:
    return torch.zeros((), dtype=torch.float64, device=generator.device)


def _one(generator: torch.Generator, _: torch.Tensor, __: int) -> torch.Tensor:
    return torch.ones((), dtype=torch.float64, device=generator.device)


def _equal(generator: torch.Generator, seed: torch.Tensor, count: int) -> torch.Tensor:
    """p·65536 is the number of one of the elements, which is kept just so.

    It is the lower half of its word: who compares upper halves with what stands below them decides only those in doubt.
    """
    return _one_of(generator, numbers(seed, count)[::2]) / NUMBERS


def _between(generator: torch.Generator, seed: torch.Tensor, count: int) -> torch.Tensor:
    """p·65536 is half above the number of one of the elements, which is dropped just so."""
    return (_one_of(generator, numbers(seed, count)) + 0.5) / NUMBERS


def _one_of(generator: torch.Generator, found: torch.Tensor) -> torch.Tensor:
    """A random one of these numbers, below three quarters of all where there is one, or 0."""
    low = found[found < NUMBERS * 3 // 4]
    choice = low if low.numel() else torch.zeros_like(found)
    return choice[torch.randint(choice.numel(), (), generator=generator, device=generator.device)].double()


def _uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


_SUMS: dict[str, Callable[[torch.Generator, int, int], torch.Tensor]] = {"tails": _below, "large": _far}
_PROBABILITIES: dict[str, Callable[[torch.Generator, torch.Tensor, int], torch.Tensor]] = {
    "any": _any,
    "tails": _tenth,
    "large": _tenth,
    "extreme": _tenth,
    "tenth": _tenth,
    "nothing_dropped": _zero,
    "all_dropped": _one,
    "equal": _equal,
    "between": _between,
}
