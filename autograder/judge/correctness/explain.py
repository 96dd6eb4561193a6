"""Where an output is wrong, in the student's words: the pattern of the damage, its first element, a map of it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from autograder.contract import Mismatch, Pattern
from autograder.judge.correctness.compare import Comparison, Damage, first_of
from autograder.judge.correctness.patterns import MATRIX, find_pattern

MAP_TILES = 32
"""The map has at most this many tiles in each direction."""

NOT_WRITTEN = "nothing"
"""In place of a value, where the judge's poison is still there."""

EMULATORS_POISON = 0xCB
"""The byte that the emulator fills a block's shared memory with before the block begins (`poison` in `block.h`)."""
_BY_CHANCE = 4
"""Bytes: a number of fewer may have the poison's value by chance."""

_ONLY = "its only element"

_NO_BARRIER = "as without a `__syncthreads()`"

_ORDER = (
    "The answer depends on the order of the threads: another order gave another answer on the same inputs. Look for a "
    "missing `__syncthreads()`, also before shared memory is used again, and for elements that two threads write."
)

HINTS: dict[Pattern, str] = {
    Pattern.everywhere: "Print what the kernel holds after each step, and compare it with the handout's formula.",
    Pattern.untouched: "Write the result into the output argument; what the function returns is ignored.",
    Pattern.all_nan: "Look for a load past the end, an overflow or a division by zero.",
    Pattern.tail: "Check how many programs the grid starts and what the last one stores.",
    Pattern.rows_from: "Check the grid along the rows and the mask of the last tile.",
    Pattern.columns_from: "Check the grid along the columns and the mask of the last tile.",
    Pattern.every_kth_row: "Check the step between rows and which rows a program owns.",
    Pattern.every_kth_column: "Check the step between elements and which of them a program owns.",
    Pattern.rows: "Look at what is special about the inputs of these rows.",
    Pattern.columns: "Look at what is special about the inputs of these columns.",
    Pattern.tile: "Check the program that owns this tile: its offsets and its masks.",
    Pattern.scattered: "Take one wrong element and follow it through the kernel: its loads, its masks, its rounding.",
}


def mismatch(name: str, got: torch.Tensor, damage: Damage, untouched: torch.Tensor) -> Mismatch:
    """Describe an output that is wrong.

    Args:
        name: of the output.
        got: the snapshot.
        damage: what comparing it found; at least one element is wrong.
        untouched: which elements still hold the judge's poison, bool.
    """
    wrong = damage.wrong
    expected, allowed = damage.first
    checked_by_value = not math.isnan(allowed)
    pattern, where = _pattern(got, wrong, untouched)
    index = first_of(wrong)
    tiles, tile = damage_map(wrong) if wrong.numel() > 1 else ((), (1, 1))
    return Mismatch(
        output=name,
        shape=tuple(got.shape),
        dtype=str(got.dtype).removeprefix("torch."),
        wrong=int(wrong.sum()),
        total=wrong.numel(),
        pattern=pattern,
        where=where,
        index=index,
        expected=text(expected) if checked_by_value else "another value",
        got=NOT_WRITTEN if bool(untouched[index]) else text(got[index]),
        tolerance=f"{allowed:.3g}" if checked_by_value else "",
        map=tiles,
        tile=tile,
    )


def rehearse(where: torch.device) -> None:
    """Explain something that is wrong on a device.

    What that loads there takes seconds, once in a process: else whoever is wrong first would wait for it.
    """
    for shape in ((64, 64), (4096,)):
        got = torch.zeros(shape, device=where)
        wrong = torch.zeros_like(got, dtype=torch.bool)
        wrong[1::3] = True
        damage = Damage()
        damage.add(Comparison(wrong, torch.zeros_like(got, dtype=torch.float64)), got.double() + 1)
        mismatch("out", got, damage, torch.zeros_like(wrong))


def sentence(found: Mismatch) -> str:
    """What is wrong, where, and the first element of it."""
    if found.pattern is Pattern.untouched:
        return f"Nothing was written to `{found.output}`: it still holds the judge's fill value."
    are = "is" if found.wrong == 1 else "are"
    count = f"{found.wrong} of {found.total} elements of `{found.output}` {are} wrong: {found.where}."
    if found.total == 1:
        why = found.where.removeprefix(_ONLY).removeprefix("; ")
        count = f"`{found.output}` is wrong in its only element{f': {why}' if why else ''}."
    place = ", ".join(str(number) for number in found.index)
    exact = found.tolerance in {"", "0"} or found.got == NOT_WRITTEN
    allowed = "" if exact else f" (allowed difference {found.tolerance})"
    first = f"At [{place}]: expected {found.expected}, got {found.got}{allowed}."
    return f"{count} {first}"


def says_what_is_missing(found: Mismatch) -> bool:
    """Whether the sentence itself names the barrier that is missing."""
    return _NO_BARRIER in found.where


def depends_on_order(found: Mismatch) -> str:
    """The sentence, and what to look for where another order of the threads gave another answer."""
    return sentence(found) if says_what_is_missing(found) else f"{sentence(found)} {_ORDER}"


def never_set(found: Mismatch) -> Mismatch:
    """The same of an output that held the judge's fill value when it was read or added to, and so still does."""
    got = "the judge's fill value" if found.got == NOT_WRITTEN else found.got
    return replace(found, pattern=Pattern.everywhere, where="it was read, or added to, before it was set", got=got)


def text(value: torch.Tensor) -> str:
    """One element as a student reads it."""
    number = value.item()
    return f"{number:.8g}" if isinstance(number, float) else str(number)


def damage_map(wrong: torch.Tensor) -> tuple[tuple[tuple[int, ...], ...], tuple[int, int]]:
    """At most 32 × 32 tiles with the wrong elements per thousand in each, and a tile's rows and columns.

    Leading dimensions are joined to rows. A vector is folded: 32 tiles of consecutive elements to a row of the map.
    """
    if wrong.numel() == 0:
        return (), (1, 1)
    if wrong.dim() < MATRIX:
        length = math.ceil(wrong.numel() / MAP_TILES**2)
        per_mille = _per_mille(wrong.reshape(1, -1), 1, length)[0]
        rows = [per_mille[start : start + MAP_TILES] for start in range(0, len(per_mille), MAP_TILES)]
        return tuple(tuple(row) for row in rows), (1, length)
    grid = wrong.reshape(-1, wrong.shape[-1])
    tile = (math.ceil(grid.shape[0] / MAP_TILES), math.ceil(grid.shape[1] / MAP_TILES))
    return tuple(tuple(row) for row in _per_mille(grid, *tile)), tile


def _per_mille(grid: torch.Tensor, rows: int, columns: int) -> list[list[int]]:
    """Wrong elements per thousand in each tile; one that has any never shows as none."""
    down, across = math.ceil(grid.shape[0] / rows), math.ceil(grid.shape[1] / columns)
    padding = (0, across * columns - grid.shape[1], 0, down * rows - grid.shape[0])

    def count(values: torch.Tensor) -> torch.Tensor:
        padded = torch.nn.functional.pad(values, padding)
        return padded.reshape(down, rows, across, columns).sum(dim=(1, 3), dtype=torch.int64)

    bad, size = count(grid), count(torch.ones_like(grid))
    shares: list[list[int]] = (-(-1000 * bad // size)).tolist()
    return shares


def _pattern(got: torch.Tensor, wrong: torch.Tensor, untouched: torch.Tensor) -> tuple[Pattern, str]:
    if bool(untouched.all()):
        return Pattern.untouched, "nothing was written: it still holds the judge's fill value"
    nan = got.isnan() if got.dtype.is_floating_point else torch.zeros_like(wrong)
    all_nan = bool(nan.all()) and bool(wrong.all())
    if wrong.numel() == 1:
        pattern = Pattern.all_nan if all_nan else Pattern.everywhere
        return pattern, f"{_ONLY}{'; it is NaN' if all_nan else _never_written(got, wrong)}"
    if all_nan:
        return Pattern.all_nan, "every element is NaN"
    unwritten = untouched & wrong
    pattern, where = find_pattern(unwritten if bool(unwritten.any()) else wrong)
    if bool(unwritten.any()):
        others = int(wrong.sum() - unwritten.sum())
        more = f", and {others} more {'is' if others == 1 else 'are'} wrong" if others else ""
        return pattern, f"{where}; nothing was written there{more}"
    if bool(nan[wrong].all()):
        return pattern, f"{where}; all of them are NaN"
    return pattern, f"{where}{_never_written(got, wrong)}"


def _never_written(got: torch.Tensor, wrong: torch.Tensor) -> str:
    """What to say where wrong elements are the filling of shared memory, as a missing barrier leaves them."""
    width = got.element_size()
    bytes_of = got[wrong].contiguous().view(torch.uint8).reshape(-1, width)
    count = int((bytes_of == EMULATORS_POISON).all(dim=1).sum())
    # Most of them are what was read there; a few in a narrow type may be numbers like any other.
    if 2 * count < bytes_of.shape[0] or count * width < _BY_CHANCE:
        return ""
    them = "all of them were" if count == bytes_of.shape[0] else f"{count} of them were"
    them = "it was" if wrong.numel() == 1 else them
    return f"; {them} read from shared memory before anything was written there, {_NO_BARRIER}"
