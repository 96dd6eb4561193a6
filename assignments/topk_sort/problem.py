"""Top-k and radix sort: rows of any length, with ties, NaN, infinities and zeros of both signs.

Row r has lengths[r] keys; what lies behind them is NaN, and belongs to nobody. The order is torch.sort's with
`descending=True, stable=True`: NaN first, whatever its sign and payload, then from +inf to -inf; -0 and +0 are equal,
and equal keys stay in the order of their indices. Of every row the first k are asked for:

    values[r, j] = keys[r, indices[r, j]] for j < min(k, lengths[r]),    -inf and -1 behind them

Nothing is rounded, so equality is asked for. The oracle does not sort floats: it maps each key to an integer that is
smaller for what comes first, and puts the key's index below it, so that no two are equal.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

APART = {"keys": 0, "lengths": 0, "values": 0, "indices": 0}
FIRST, ABSENT = -(2**31), 2**31 - 1
"""What NaN is mapped to, and what a place without a key: no other key has these."""
FEW = 8
"""Where k is smaller than a row by this factor, the oracle selects and does not sort."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, n: int, k: int
) -> dict[str, torch.Tensor]:
    """Return `keys` of shape (rows, n), `lengths` of shape (rows,), int32, and `k` as `asked`, for the oracle."""
    keys = _DISTRIBUTIONS[distribution](generator, rows, n, dtype)
    lengths = _lengths(generator, rows, n, full=distribution == "full")
    keys.masked_fill_(torch.arange(n, device=keys.device) >= lengths[:, None], torch.nan)
    return {"keys": keys, "lengths": lengths.int(), "asked": torch.tensor(k, device=keys.device)}


def expected(*, keys: torch.Tensor, lengths: torch.Tensor, asked: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `values`, in float64, and `indices`, int64, both of shape (rows, k)."""
    rows, n = keys.shape
    index = torch.arange(n, device=keys.device)
    numbers = _numbers(keys).masked_fill_(index >= lengths[:, None], ABSENT)
    numbers.bitwise_left_shift_(32).bitwise_or_(index)
    k = int(asked)
    kept = min(k, n)
    if kept * FEW <= n:
        first = numbers.topk(kept, dim=1, largest=False, sorted=True).values
    else:
        first = numbers.sort(dim=1).values[:, :kept]
    present = (first >> 32) != ABSENT
    found = first & 0xFFFFFFFF
    values = torch.full((rows, k), -torch.inf, dtype=torch.float64, device=keys.device)
    indices = torch.full((rows, k), -1, dtype=torch.int64, device=keys.device)
    values[:, :kept] = torch.where(present, keys.gather(1, found).double(), -torch.inf)
    indices[:, :kept] = torch.where(present, found, -1)
    return {"values": values, "indices": indices}


def error_scale(*, keys: torch.Tensor, lengths: torch.Tensor, asked: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return zeros: nothing is rounded."""
    nothing = torch.zeros(len(lengths), int(asked), dtype=torch.float64, device=keys.device)
    return {"values": nothing, "indices": nothing}


def _numbers(keys: torch.Tensor) -> torch.Tensor:
    """For each key an int64 of 32 bits that is smaller for what comes first, and the same for what is equal."""
    wide = keys.float()
    bits = torch.where(wide == 0.0, 0.0, wide).view(torch.int32)
    falling = ~(bits ^ ((bits >> 31) & 0x7FFFFFFF))
    return torch.where(wide.isnan(), FIRST, falling).long()


def _lengths(generator: torch.Generator, rows: int, n: int, *, full: bool) -> torch.Tensor:
    """How many keys each row has: one is full, of three or more one is empty, of four or more one has a single key."""
    lengths = torch.full((rows,), n, dtype=torch.int64, device=generator.device)
    if full:
        return lengths
    drawn = torch.randint(1, n + 1, (rows,), generator=generator, device=generator.device)
    lengths[1:] = drawn[1:]
    lengths[2:3] = 0
    lengths[3:4] = 1
    return lengths[torch.randperm(rows, generator=generator, device=generator.device)]


# --- what is drawn: every function takes the rows' number and length, and the type ----------------------------------


def _decades(generator: torch.Generator, rows: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    """Magnitudes over six decades with both signs: every digit of a key counts."""
    return (10 ** (6 * _unit(generator, rows, n) - 3)).copysign_(_unit(generator, rows, n) - 0.5).to(dtype)


def _ties(generator: torch.Generator, rows: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    """Integers from -3 to 3, zeros with both signs: the order is that of the indices, nearly everywhere."""
    whole = torch.randint(-3, 4, (rows, n), generator=generator, dtype=torch.float32, device=generator.device)
    sign = _unit(generator, rows, n) - 0.5
    return torch.where(whole == 0.0, whole.copysign(sign), whole).to(dtype)


def _special(generator: torch.Generator, rows: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    """A tenth NaN of both signs, infinities, zeros of both signs, the smallest and largest numbers, and others."""
    info = torch.finfo(dtype)
    rare = torch.tensor(
        [torch.nan, torch.inf, 0.0, info.tiny, info.tiny / 4, info.max], dtype=torch.float32, device=generator.device
    )
    which = torch.randint(10, (rows, n), generator=generator, device=generator.device)
    usual = torch.randn(rows, n, generator=generator, dtype=torch.float32, device=generator.device).abs_()
    mixed = torch.where(which < len(rare), rare[which.clamp(max=len(rare) - 1)], usual)
    return mixed.copysign_(_unit(generator, rows, n) - 0.5).to(dtype)


def _low(generator: torch.Generator, rows: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    """Keys of a row differ in their lowest bits only; its sign and its scale are drawn."""
    steps = torch.randint(100, (rows, n), generator=generator, dtype=torch.float32, device=generator.device)
    scale = 2.0 ** torch.randint(-3, 4, (rows, 1), generator=generator, device=generator.device)
    return ((1.0 + steps * torch.finfo(dtype).eps) * scale).copysign_(_unit(generator, rows, 1) - 0.5).to(dtype)


def _runs(generator: torch.Generator, rows: int, n: int, dtype: torch.dtype) -> torch.Tensor:
    """Sorted already, each row up or down, but for one key in twenty: neighbours have the same digits."""
    rising = _decades(generator, rows, n, torch.float32).sort(dim=1).values
    flipped = _unit(generator, rows, 1) < 0.5
    rising = torch.where(flipped, rising.flip(1), rising)
    stray = _unit(generator, rows, n) < 0.05
    return torch.where(stray, _unit(generator, rows, n) - 0.5, rising).to(dtype)


def _unit(generator: torch.Generator, rows: int, n: int) -> torch.Tensor:
    return torch.rand(rows, n, generator=generator, dtype=torch.float32, device=generator.device)


Maker = Callable[[torch.Generator, int, int, torch.dtype], torch.Tensor]
_DISTRIBUTIONS: dict[str, Maker] = {
    "decades": _decades,
    "full": _decades,
    "ties": _ties,
    "special": _special,
    "low": _low,
    "runs": _runs,
}
