"""Find the shape of the damage in an output: the last tile, every 33rd column, everything from an index on.

A pattern is a region that holds every wrong element. The first region that is wrong throughout names the damage; if
none is, the first that is wrong for the most part (an element may be right by chance); else the damage is scattered.
"""

from __future__ import annotations

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


class Hits:
    """Which rows or columns have a wrong element; at least one has. Never as a list: a vector has up to 2^31 columns.

    Attributes:
        count: how many.
        first, last: the lowest and the highest index.
        length: of all rows or columns.
    """

    def __init__(self, hit: torch.Tensor) -> None:
        """Count them; `hit` is a bool for each."""
        self._hit = hit
        self.length = hit.shape[0]
        self.count = int(hit.sum())
        self.first = _first(hit)
        self.last = self.length - 1 - _first(hit.flip(0))

    def lowest(self, most: int) -> list[int]:
        """Up to so many indices, ascending."""
        found: list[int] = self._hit.nonzero()[:most].reshape(-1).tolist()
        return found

    def step(self) -> int:
        """The step of an arithmetic progression that runs through all of the length, 0 if it is none."""
        if self.count < MIN_STEPS:
            return 0
        step = 1 + _first(self._hit[self.first + 1 :])
        through = self.first < step and self.last + step >= self.length
        if step == 1 or not through or self.last - self.first != (self.count - 1) * step:
            return 0
        return step if bool(self._hit[self.first :: step].all()) else 0

    def runs(self) -> tuple[int, int] | None:
        """How long runs are that begin at one distance, through all of the length, and that distance."""
        rest = self._hit[self.first :]
        if bool(rest.all()):
            return None
        run = _first(~rest)
        if not bool(rest[run:].any()):
            return None
        step = run + _first(rest[run:])
        if run < MIN_TILE or self.first >= step:
            return None
        whole = rest.shape[0] // step * step
        parts = (rest[:whole].reshape(-1, step), rest[whole:].reshape(1, -1))
        even = all(bool(part[:, :run].all()) and not bool(part[:, run:].any()) for part in parts)
        return (run, step) if even else None


def _first(hit: torch.Tensor) -> int:
    """Index of the first that is true; 0 where none is."""
    return int(hit.to(torch.uint8).argmax())


@dataclass(frozen=True)
class Damage:
    """The wrong elements of an output as rows and columns; a vector is one row.

    Attributes:
        rows, columns: those that have a wrong element.
        height, width: of the output.
        first: flat index of the first wrong element.
        first_row: how many elements are wrong in the first row that has any.
    """

    rows: Hits
    columns: Hits
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
    rows = Hits(grid.any(dim=1))
    return Damage(
        rows=rows,
        columns=Hits(grid.any(dim=0)),
        height=grid.shape[0],
        width=grid.shape[1],
        first=_first(grid.reshape(-1)),
        first_row=int(grid[rows.first].sum()),
        vector=vector,
    )


def _regions(damage: Damage) -> Iterator[Region]:
    """Regions that hold all wrong elements, the most telling first."""
    yield from _ends(damage)
    yield from _steps(damage)
    yield from _boxes(damage)
    if not damage.vector:
        yield Region(Pattern.rows, damage.rows.count * damage.width, lambda: _listed("row", damage.rows))
        yield Region(Pattern.columns, damage.height * damage.columns.count, lambda: _listed("column", damage.columns))


def _ends(damage: Damage) -> Iterator[Region]:
    """From some row, column or element on, to the end."""
    row, column, total = damage.rows.first, damage.columns.first, damage.height * damage.width
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
    tall, wide = damage.rows.count * damage.width, damage.height * damage.columns.count
    top, left = damage.rows.first, damage.columns.first
    word = "element" if damage.vector else "column"
    if not damage.vector and (step := damage.rows.step()):
        yield Region(Pattern.every_kth_row, tall, lambda: _every(step, "row", top))
    if across := damage.columns.step():
        yield Region(Pattern.every_kth_column, wide, lambda: _every(across, word, left))
    if not damage.vector and (runs := damage.rows.runs()):
        yield Region(Pattern.every_kth_row, tall, partial(_run, runs, "row", top))
    if runs := damage.columns.runs():
        yield Region(Pattern.every_kth_column, wide, partial(_run, runs, word, left))


def _boxes(damage: Damage) -> Iterator[Region]:
    """The smallest block of rows and columns around the damage."""
    top, bottom, left, right = damage.rows.first, damage.rows.last, damage.columns.first, damage.columns.last
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


def _listed(word: str, hits: Hits) -> str:
    """`rows 3, 17 and 40`, the first few of them."""
    indices = hits.lowest(LISTED)
    if hits.count == 1:
        return f"{word} {indices[0]}"
    if hits.count > LISTED:
        return f"{hits.count} {word}s, among them {', '.join(map(str, indices))}"
    return f"{word}s {', '.join(map(str, indices[:-1]))} and {indices[-1]}"


def _share(count: int, total: int) -> str:
    return "every element" if count == total else f"nearly everywhere, {1000 * count // total / 10} % of the elements"


def _single(damage: Damage) -> str:
    if damage.vector:
        return f"a single element, index {damage.first}"
    return f"a single element, row {damage.rows.first}, column {damage.columns.first}"


def _scattered(damage: Damage, count: int) -> str:
    if damage.vector:
        return f"single elements between index {damage.columns.first} and {damage.columns.last}"
    rows = "row" if damage.rows.count == 1 else "rows"
    columns = "column" if damage.columns.count == 1 else "columns"
    return f"{count} elements spread over {damage.rows.count} {rows} and {damage.columns.count} {columns}"
