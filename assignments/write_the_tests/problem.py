"""Tests of a softmax, held against implementations that are right and against mutants of it.

A submission writes test rows: inputs, how long each row is, what is right, and how far an answer may be off. The judge
answers each row with every implementation below and sees which of them the tests refuse. Which mutants they are, and
with which numbers, is drawn at every call and stays in the judge.

An honest implementation takes the maximum m of a row, subtracts it, and divides exponentials by their sum, in float32.
Off are the difference, by half an eps of |x - m|, which is an error of as much in the exponential; the exponential, by
two eps; the sum of n positive numbers in any order, by (n - 1) / 2 eps; and the quotient. Together, relative to the
answer, at most

    (n / 2 + |x - m| / 2 + 4) · eps,   eps = 2^-23,

and 2^-126 in all, as some hardware flushes what is smaller to zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

Tensors = dict[str, torch.Tensor]
Implementation = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From x and where a row has elements, both (tests, width), to the answer, float32; x is -inf where it has none."""

LARGEST = 1e4
"""Finite inputs are promised to be no larger. Also promised: no NaN, no +inf, and something finite in every row."""
KILLED, OF = 4, 5
"""The share of the mutants that have to be refused."""
MUTANTS = 10
"""In one case."""
BLOCKS = 3
"""Sizes of block in which honest implementations work, in one case."""
TINY = 2.0**-126
LOG2_E = 1.4426950408889634


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, tests: int, width: int
) -> dict[str, torch.Tensor]:
    """Return what the judge keeps, int64: `room`, the numbers of rows and columns, `blocks`, and `mutants`, one a row.

    `blocks` are those that honest implementations work in. `mutants` holds which fault each has, the column at which it
    is, and the block that it works in.
    """
    del dtype
    kinds = torch.tensor([list(_FAULTS).index(name) for name in _DISTRIBUTIONS[distribution]])

    def draw(high: int) -> torch.Tensor:
        return torch.randint(0, max(1, high), (MUTANTS,), generator=generator, device=generator.device)

    turn = (torch.arange(MUTANTS) + draw(len(kinds))[0]) % max(1, len(kinds))
    block = 2 ** (1 + draw(int(math.log2(max(2, width // 2))) - 1))
    drawn = torch.stack([kinds[turn] if len(kinds) else turn, draw(width - 1), block], dim=1)
    return {
        "room": torch.tensor([tests, width]),
        "blocks": 5 + draw(60)[:BLOCKS],
        "mutants": drawn if len(kinds) else drawn[:0],
    }


def expected(**_: torch.Tensor) -> Tensors:
    """Return nothing: many tests are right, and `check` decides."""
    return {}


def check(inputs: Tensors, outputs: Tensors) -> Tensors:
    """Return what is wrong with tests: what they ask, whom they refuse, or all of `x` where they find too little."""
    x, length, right, allowed = (outputs[name] for name in ("x", "length", "right", "allowed"))
    wrong = {name: torch.zeros_like(value, dtype=torch.bool) for name, value in outputs.items()}
    wrong["length"] = (length < 0) | (length > x.shape[1])
    used = torch.arange(x.shape[1], device=x.device) < length[:, None]
    wrong["x"] = used & _not_promised(x, used)
    if bool(wrong["length"].any()) or bool(wrong["x"].any()):
        return wrong
    row = x.masked_fill(~used, -torch.inf)

    def refused(implementation: Implementation) -> torch.Tensor:
        return used & ~((implementation(row, used) - right).abs() <= allowed)

    for implementation in (*HONEST, *(_online(block) for block in inputs["blocks"].tolist())):
        wrong["right"] |= refused(implementation)
    if not bool(wrong["right"].any()):
        mutants = inputs["mutants"].tolist()
        killed = sum(bool(refused(mutant(*numbers)).any()) for numbers in mutants)
        wrong["x"] |= OF * killed < KILLED * len(mutants)
    return wrong


def _not_promised(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    nothing = ~(used & x.isfinite()).any(dim=1, keepdim=True)
    return x.isnan() | (x > LARGEST) | ((x < -LARGEST) & ~x.isinf()) | nothing


# --- right -----------------------------------------------------------------------------------------------------------


def _largest(x: torch.Tensor) -> torch.Tensor:
    """The maximum of each row; 0 where a row, or a block of one, has nothing finite."""
    found = x.amax(dim=1, keepdim=True) if x.shape[1] else x.new_full((len(x), 1), -torch.inf)
    return found.masked_fill(found == -torch.inf, 0.0)


def _divided(parts: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    return parts / total


def _exact(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    wide = x.double()
    parts = (wide - _largest(wide)).exp()
    return _divided(parts, parts.sum(dim=1, keepdim=True)).float()


def _plain(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    parts = (x - _largest(x)).exp()
    return _divided(parts, parts.sum(dim=1, keepdim=True))


def _one_after_the_other(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    parts, total = (x - _largest(x)).exp(), torch.zeros_like(x[:, :1])
    for column in range(x.shape[1]):
        total = total + parts[:, column : column + 1]
    return _divided(parts, total)


def _base_two(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    parts = torch.exp2((x - _largest(x)) * LOG2_E)
    return parts * (1.0 / parts.sum(dim=1, keepdim=True))


def _flushed(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    found = _base_two(x, used)
    return found.masked_fill(found < TINY, 0.0)


def _online(block: int, *, rescale: bool = True, careful: bool = True) -> Implementation:
    """The maximum and the sum carried over blocks of columns; the mutants leave one thing out."""

    def softmax(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        largest, total = x.new_full((len(x), 1), -torch.inf), torch.zeros_like(x[:, :1])
        for part in x.split(block, dim=1):
            raised = torch.maximum(largest, part.amax(dim=1, keepdim=True))
            pivot = raised.masked_fill(raised == -torch.inf, 0.0) if careful else raised
            total = (total * (largest - pivot).exp() if rescale else total) + (part - pivot).exp().sum(1, keepdim=True)
            largest = raised
        return _divided((x - largest).exp(), total)

    return softmax


HONEST: tuple[Implementation, ...] = (_exact, _plain, _one_after_the_other, _base_two, _flushed)
"""Those that are always asked; online ones come in the blocks that are drawn."""


# --- wrong: each takes the column and the block that are drawn -------------------------------------------------------


def _over(parts: torch.Tensor, summed: torch.Tensor) -> torch.Tensor:
    return _divided(parts, summed.sum(dim=1, keepdim=True))


def _columns(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[1], device=x.device)[None, :]


def _no_maximum(_at: int, _block: int) -> Implementation:
    return lambda x, _: _over(x.exp(), x.exp())


def _maximum_of_a_block(_at: int, block: int) -> Implementation:
    def softmax(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        parts = (x - x[:, :block].amax(dim=1, keepdim=True)).exp()
        return _over(parts, parts)

    return softmax


def _maximum_from_zero(_at: int, _block: int) -> Implementation:
    def softmax(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        parts = (x - x.amax(dim=1, keepdim=True).clamp(min=0.0)).exp()
        return _over(parts, parts)

    return softmax


def _maximum_of_absolutes(_at: int, _block: int) -> Implementation:
    def softmax(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        parts = (x - x.masked_fill(x.isinf(), 0.0).abs().amax(dim=1, keepdim=True)).exp()
        return _over(parts, parts)

    return softmax


def _only(keep: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Implementation:
    """The softmax of some columns, and zeros in the others."""

    def softmax(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
        parts = (x - _largest(x)).exp() * keep(_columns(x), used.sum(dim=1, keepdim=True))
        return _over(parts, parts).nan_to_num(0.0)

    return softmax


def _tail_skipped(_at: int, block: int) -> Implementation:
    return _only(lambda column, length: column < length // block * block)


def _long_rows_cut(_at: int, block: int) -> Implementation:
    return _only(lambda column, _: column < block)


def _tail_as_zeros(_at: int, block: int) -> Implementation:
    def softmax(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
        extra = -used.sum(dim=1, keepdim=True) % block
        largest = torch.where(extra > 0, _largest(x).clamp(min=0.0), _largest(x))
        parts = (x - largest).exp()
        zeros = torch.where(extra > 0, extra * (-largest).exp(), 0.0)
        return _divided(parts, parts.sum(dim=1, keepdim=True) + zeros)

    return softmax


def _not_rescaled(_at: int, block: int) -> Implementation:
    return _online(block, rescale=False)


def _block_of_minus_infinity(_at: int, block: int) -> Implementation:
    return _online(block, careful=False)


def _column_left_out(at: int, _block: int) -> Implementation:
    def softmax(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        parts = (x - _largest(x)).exp()
        return _over(parts, parts * (_columns(x) != at))

    return softmax


def _neighbours_exchanged(at: int, _block: int) -> Implementation:
    def softmax(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
        found = _plain(x, used).clone()
        found[:, at : at + 2] = found[:, at : at + 2].flip(1)
        return found

    return softmax


def _half_inputs(_at: int, _block: int) -> Implementation:
    return lambda x, used: _plain(x.half().float(), used)


def _half_sum(_at: int, _block: int) -> Implementation:
    def softmax(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        parts = (x - _largest(x)).exp()
        return _divided(parts, parts.sum(dim=1, keepdim=True).half().float())

    return softmax


def _small_is_zero(_at: int, block: int) -> Implementation:
    def softmax(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
        found = _plain(x, used)
        return found.masked_fill(found < 2.0 ** -(12 + block % 8), 0.0)

    return softmax


def _ties_counted_once(_at: int, _block: int) -> Implementation:
    def softmax(x: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
        first = torch.zeros_like(used).scatter(1, x.argmax(dim=1, keepdim=True), value=True)
        parts = (x - _largest(x)).exp()
        return _over(parts, parts * (first | (x < _largest(x))))

    return softmax


_FAULTS: dict[str, Callable[[int, int], Implementation]] = {
    "no maximum": _no_maximum,
    "maximum of the first block": _maximum_of_a_block,
    "maximum begins at zero": _maximum_from_zero,
    "maximum of absolute values": _maximum_of_absolutes,
    "tail skipped": _tail_skipped,
    "long rows cut": _long_rows_cut,
    "tail counted as zeros": _tail_as_zeros,
    "sum not rescaled": _not_rescaled,
    "block of minus infinity": _block_of_minus_infinity,
    "column left out": _column_left_out,
    "neighbours exchanged": _neighbours_exchanged,
    "inputs in half precision": _half_inputs,
    "sum in half precision": _half_sum,
    "small answers are zero": _small_is_zero,
    "ties counted once": _ties_counted_once,
}


def mutant(kind: int, at: int, block: int) -> Implementation:
    """Return the implementation with one fault, at a column or in blocks of so many columns."""
    return list(_FAULTS.values())[kind](at, block)


_MAXIMA = ("no maximum", "maximum of the first block", "maximum begins at zero", "maximum of absolute values")
_ENDS = ("tail skipped", "long rows cut", "tail counted as zeros")
_ONLINE = ("sum not rescaled", "block of minus infinity")
_PLACES = ("column left out", "neighbours exchanged")
_PRECISION = ("inputs in half precision", "sum in half precision", "small answers are zero")

_DISTRIBUTIONS: dict[str, Sequence[str]] = {
    "nobody": (),
    "overflow": ("no maximum",),
    "maxima": _MAXIMA,
    "ends": _ENDS,
    "online": _ONLINE,
    "places": _PLACES,
    "precision": _PRECISION,
    "ties": ("ties counted once",),
    "blocks": (*_ENDS, *_ONLINE, "maximum of the first block"),
    "values": (*_MAXIMA, *_PRECISION, "ties counted once"),
    "anything": tuple(_FAULTS),
}
"""The faults that the mutants of a case have, each in turn."""
