"""Where an output is wrong, in the student's words: the pattern of the damage, its first element, a map of it."""

from __future__ import annotations

import math

import torch

from autograder.contract import Mismatch, Pattern
from autograder.judge.compare import Comparison
from autograder.judge.patterns import MATRIX, find_pattern

MAP_TILES = 32
"""The map has at most this many tiles in each direction."""

NOT_WRITTEN = "nothing"
"""In place of a value, where the judge's poison is still there."""

EMULATORS_POISON = 0xCB
"""The byte that the emulator fills a block's shared memory with before the block begins (`poison` in `block.h`)."""
_BY_CHANCE = 4
"""Bytes: a number of fewer may have the poison's value by chance."""

_NO_BARRIER = "as without a `__syncthreads()`"

HINTS: dict[Pattern, str] = {
    Pattern.everywhere: "Work a small case by hand and compare it with the handout's formula.",
    Pattern.untouched: "Write the result into the output argument; what the function returns is ignored.",
    Pattern.all_nan: "Look for loads past the end, an overflow, or a division by zero.",
    Pattern.tail: "Check how many programs the grid starts and what the last one stores.",
    Pattern.rows_from: "Check the grid along the rows and the mask of the last tile.",
    Pattern.columns_from: "Check the grid along the columns and the mask of the last tile.",
    Pattern.every_kth_row: "Check the step between rows and which rows a program owns.",
    Pattern.every_kth_column: "Check the step between elements and which of them a program owns.",
    Pattern.rows: "Look at what is special about the inputs of these rows.",
    Pattern.columns: "Look at what is special about the inputs of these columns.",
    Pattern.tile: "Check the program that owns this tile: its offsets and its masks.",
    Pattern.scattered: "Compare single elements with the handout's formula: precision and special values first.",
}


def mismatch(
    name: str, got: torch.Tensor, expected: torch.Tensor, comparison: Comparison, untouched: torch.Tensor
) -> Mismatch:
    """Describe an output that is wrong.

    Args:
        name: of the output.
        got: the snapshot.
        expected: the oracle's values.
        comparison: what comparing them found; at least one element is wrong.
        untouched: which elements still hold the judge's poison, bool.
    """
    wrong = comparison.wrong
    pattern, where = _pattern(got, wrong, untouched)
    index = _first(wrong)
    tiles, tile = damage_map(wrong)
    return Mismatch(
        output=name,
        shape=tuple(got.shape),
        dtype=str(got.dtype).removeprefix("torch."),
        wrong=int(wrong.sum()),
        total=wrong.numel(),
        pattern=pattern,
        where=where,
        index=index,
        expected=text(expected[index]),
        got=NOT_WRITTEN if bool(untouched[index]) else text(got[index]),
        tolerance=f"{float(comparison.allowed[index]):.3g}",
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
        comparison = Comparison(wrong, torch.zeros_like(got, dtype=torch.float64))
        mismatch("out", got, got.double() + 1, comparison, torch.zeros_like(wrong))


def sentence(found: Mismatch) -> str:
    """What is wrong, where, and the first element of it."""
    if found.pattern is Pattern.untouched:
        return f"Nothing was written to `{found.output}`: it still holds the judge's filling."
    are = "is" if found.wrong == 1 else "are"
    count = f"{found.wrong} of {found.total} elements of `{found.output}` {are} wrong: {found.where}."
    place = ", ".join(str(number) for number in found.index)
    exact = found.tolerance == "0" or found.got == NOT_WRITTEN
    allowed = "" if exact else f" (allowed difference {found.tolerance})"
    return f"{count} At [{place}]: expected {found.expected}, got {found.got}{allowed}."


def told(found: Mismatch) -> str:
    """The sentence, and what to do about it; nothing more where the sentence itself says what is missing."""
    return sentence(found) if _NO_BARRIER in found.where else f"{sentence(found)} {HINTS[found.pattern]}"


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
        padded = torch.nn.functional.pad(values.to(torch.int64), padding)
        return padded.reshape(down, rows, across, columns).sum(dim=(1, 3))

    bad, size = count(grid), count(torch.ones_like(grid))
    shares: list[list[int]] = (-(-1000 * bad // size)).tolist()
    return shares


def _pattern(got: torch.Tensor, wrong: torch.Tensor, untouched: torch.Tensor) -> tuple[Pattern, str]:
    if bool(untouched.all()):
        return Pattern.untouched, "nothing was written: it still holds the judge's filling"
    nan = got.isnan() if got.dtype.is_floating_point else torch.zeros_like(wrong)
    if bool(nan.all()) and bool(wrong.all()):
        return Pattern.all_nan, "every element is NaN"
    pattern, where = find_pattern(wrong)
    if bool(untouched[wrong].all()):
        return pattern, f"{where}; nothing was written there"
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
    return f"; {them} read from shared memory before anything was written there, {_NO_BARRIER}"


def _first(wrong: torch.Tensor) -> tuple[int, ...]:
    """The index of the first wrong element, row by row."""
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return tuple(int(number) for number in torch.unravel_index(torch.tensor(flat), wrong.shape))
