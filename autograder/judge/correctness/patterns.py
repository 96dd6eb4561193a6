"""Find the shape of the damage in an output: the last tile, every 33rd column, everything from an index on.

A pattern is a region that holds every wrong element. The first region that is wrong throughout names the damage; if
none is, the first that is wrong for the most part (an element may be right by chance); else the damage is scattered.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from autograder.contract import Pattern

DENSE = 0.9
"""How much of a region has to be wrong for its name to be used."""

MIN_TILE = 8
MIN_STEPS = 3
MIN_RUNS = 2
"""So many tiles at one distance are no chance, where they run through all of a length."""
MATRIX = 2
LISTED = 4


@dataclass(frozen=True)
class Region:
    """A part of the output: how many elements it has, and its name in words, made when it is asked for."""

    pattern: Pattern
    size: int
    words: Callable[[], str]


@dataclass(frozen=True)
class Damage:
    """The wrong elements of an output as rows and columns; a vector is one row.

    Attributes:
        rows, columns: indices of those that have a wrong element, ascending.
        height, width: of the output.
        first: flat index of the first wrong element.
        first_row: how many elements are wrong in the first row that has any.
    """

    rows: list[int]
    columns: list[int]
    height: int
    width: int
    first: int
    first_row: int
    vector: bool


def find_pattern(wrong: torch.Tensor) -> tuple[Pattern, str]:
    """Name the damage and say where it is, `rows 960–1023 (the last tile of 64)`.

    Args:
        wrong: which elements are wrong, bool, any shape; at least one is. Leading dimensions are joined to rows;
            a matrix of one row is a vector.
    """
    vector = wrong.dim() < MATRIX or wrong.shape[-1] == wrong.numel()
    grid = wrong.reshape(1, -1) if vector else wrong.reshape(-1, wrong.shape[-1])
    count = int(grid.sum())
    damage = _damage(grid, vector)
    whole = Region(Pattern.everywhere, grid.numel(), lambda: _share(count, grid.numel()))
    regions = list(_regions(damage))
    if count == 1 and damage.first < grid.numel() - 1:
        return Pattern.scattered, _single(damage)
    for region in (whole, *regions):
        if region.size == count:
            return region.pattern, region.words()
    for region in (whole, *regions):
        if count >= DENSE * region.size:
            return region.pattern, region.words()
    return Pattern.scattered, _scattered(damage, count)


def _damage(grid: torch.Tensor, vector: bool) -> Damage:
    rows = grid.any(dim=1).nonzero().reshape(-1).tolist()
    return Damage(
        rows=rows,
        columns=grid.any(dim=0).nonzero().reshape(-1).tolist(),
        height=grid.shape[0],
        width=grid.shape[1],
        first=int(grid.reshape(-1).to(torch.uint8).argmax()),
        first_row=int(grid[rows[0]].sum()),
        vector=vector,
    )


def _regions(damage: Damage) -> Iterator[Region]:
    """Regions that hold all wrong elements, the most telling first."""
    yield from _ends(damage)
    yield from _steps(damage)
    yield from _boxes(damage)
    if not damage.vector:
        yield Region(Pattern.rows, len(damage.rows) * damage.width, lambda: _listed("row", damage.rows))
        yield Region(Pattern.columns, damage.height * len(damage.columns), lambda: _listed("column", damage.columns))


def _ends(damage: Damage) -> Iterator[Region]:
    """From some row, column or element on, to the end."""
    row, column, total = damage.rows[0], damage.columns[0], damage.height * damage.width
    starts_a_row = damage.first_row >= DENSE * damage.width
    if row and not damage.vector and starts_a_row:
        size = (damage.height - row) * damage.width
        yield Region(Pattern.rows_from, size, lambda: _range("row", row, damage.height - 1, damage.height))
    if column and not damage.vector:
        size = damage.height * (damage.width - column)
        yield Region(Pattern.columns_from, size, lambda: _range("column", column, damage.width - 1, damage.width))
    if damage.first:
        yield Region(Pattern.tail, total - damage.first, lambda: _tail(damage, total))


def _steps(damage: Damage) -> Iterator[Region]:
    """Every k-th row or column, or every k-th tile of them."""
    if (step := _step(damage.rows, damage.height)) and not damage.vector:
        size = len(damage.rows) * damage.width
        yield Region(Pattern.every_kth_row, size, lambda: _every(step, "row", damage.rows[0]))
    if across := _step(damage.columns, damage.width):
        word = "element" if damage.vector else "column"
        size = damage.height * len(damage.columns)
        yield Region(Pattern.every_kth_column, size, lambda: _every(across, word, damage.columns[0]))
    if (runs := _runs(damage.rows, damage.height)) and not damage.vector:
        yield Region(Pattern.every_kth_row, len(damage.rows) * damage.width, partial(_run, runs, "row", damage.rows[0]))
    if runs := _runs(damage.columns, damage.width):
        word, size = "element" if damage.vector else "column", damage.height * len(damage.columns)
        yield Region(Pattern.every_kth_column, size, partial(_run, runs, word, damage.columns[0]))


def _boxes(damage: Damage) -> Iterator[Region]:
    """The smallest block of rows and columns around the damage."""
    top, bottom, left, right = damage.rows[0], damage.rows[-1], damage.columns[0], damage.columns[-1]
    size = (bottom - top + 1) * (right - left + 1)
    rows = _range("row", top, bottom, damage.height)
    columns = _range("element" if damage.vector else "column", left, right, damage.width)
    if damage.vector:
        yield Region(Pattern.tile, size, lambda: columns)
    elif right - left + 1 == damage.width:
        yield Region(Pattern.rows, size, lambda: rows)
    elif bottom - top + 1 == damage.height:
        yield Region(Pattern.columns, size, lambda: columns)
    else:
        yield Region(Pattern.tile, size, lambda: f"{rows}, {columns}")


def _step(indices: list[int], length: int) -> int:
    """The step of an arithmetic progression that runs through all of `length`, 0 if it is none."""
    if len(indices) < MIN_STEPS:
        return 0
    step = indices[1] - indices[0]
    even = all(after - before == step for before, after in itertools.pairwise(indices))
    return step if even and step > 1 and indices[0] < step and indices[-1] + step >= length else 0


def _runs(indices: list[int], length: int) -> tuple[int, int] | None:
    """How long runs are that begin at one distance, through all of `length`, and that distance; `None` if none are."""
    starts = [indices[0], *(after for before, after in itertools.pairwise(indices) if after > before + 1)]
    if len(starts) < MIN_RUNS:
        return None
    run, step = indices.index(starts[1]), starts[1] - starts[0]
    through = (range(start, min(start + run, length)) for start in range(starts[0], length, step))
    even = starts[0] < step and run >= MIN_TILE and list(itertools.chain.from_iterable(through)) == indices
    return (run, step) if even else None


def _range(word: str, first: int, last: int, length: int) -> str:
    """`rows 960–1023 (the last tile of 64)`."""
    name = f"{word} {first}" if first == last else f"{word}s {first}–{last}"
    return f"{name}{_tile(word, first, last, length)}"


def _tile(word: str, first: int, last: int, length: int) -> str:
    """What a run of rows, columns or elements is in tiles of a power of two."""
    count, at_end = last - first + 1, last == length - 1
    if count >= MIN_TILE and count & (count - 1) == 0 and first % count == 0:
        return f" (the {'last' if at_end else f'{_ordinal(first // count + 1)}'} tile of {count})"
    largest = first & -first
    if at_end and largest >= max(MIN_TILE, count):
        return f" (the last {count} of {length}: not a whole tile)" if count > 1 else f" (the last {word})"
    return f" (the last {word})" if at_end and count == 1 else ""


def _tail(damage: Damage, total: int) -> str:
    if damage.vector:
        return f"everything from index {damage.first} on{_tile('element', damage.first, total - 1, total)}"
    row, column = divmod(damage.first, damage.width)
    return f"everything from row {row}, column {column} on"


def _every(step: int, word: str, start: int) -> str:
    return f"every {_ordinal(step)} {word}, starting with {word} {start}"


def _run(runs: tuple[int, int], word: str, start: int) -> str:
    run, step = runs
    return f"{run} of every {step} {word}s, from {'index' if word == 'element' else word} {start} on"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _listed(word: str, indices: list[int]) -> str:
    """`rows 3, 17 and 40`, the first few of them."""
    if len(indices) == 1:
        return f"{word} {indices[0]}"
    if len(indices) > LISTED:
        return f"{len(indices)} {word}s, among them {', '.join(map(str, indices[:LISTED]))}"
    return f"{word}s {', '.join(map(str, indices[:-1]))} and {indices[-1]}"


def _share(count: int, total: int) -> str:
    return "every element" if count == total else f"nearly everywhere, {1000 * count // total / 10} % of the elements"


def _single(damage: Damage) -> str:
    if damage.vector:
        return f"a single element, index {damage.first}"
    return f"a single element, row {damage.rows[0]}, column {damage.columns[0]}"


def _scattered(damage: Damage, count: int) -> str:
    if damage.vector:
        return f"single elements between index {damage.columns[0]} and {damage.columns[-1]}"
    rows = "row" if len(damage.rows) == 1 else "rows"
    columns = "column" if len(damage.columns) == 1 else "columns"
    return f"{count} elements spread over {len(damage.rows)} {rows} and {len(damage.columns)} {columns}"
