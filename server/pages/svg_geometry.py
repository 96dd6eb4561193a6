"""The geometry of what pages draw. Templates turn it into SVG; nothing here knows a colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autograder.contract import Mismatch
from server.pages.formats import count, interval, ratio

CELL = 12
"""Units of one tile of a damage map."""
_PER_MILLE = 1000
_SMALLEST = 0.34
"""Side of the mark of a tile with one wrong element, of the tile's own: small, and still to be seen."""


@dataclass(frozen=True)
class Mark:
    """The wrong share of one tile: a square whose side grows with it, so that no colour has to be told apart."""

    x: float
    y: float
    side: float
    share: str


@dataclass(frozen=True)
class DamageMap:
    """An output cut into tiles.

    Attributes:
        columns, rows: how many tiles.
        first: the tile of the first wrong element, `(column, row)`.
        caption: what one square stands for.
        axis: what lies along the map, from its first to its last element.
    """

    columns: int
    rows: int
    marks: tuple[Mark, ...]
    first: tuple[int, int] | None
    caption: str
    label: str
    down: tuple[str, str]
    across: tuple[str, str]

    @property
    def width(self) -> int:
        """In units."""
        return self.columns * CELL

    @property
    def height(self) -> int:
        """In units."""
        return self.rows * CELL


def damage_map(mismatch: Mismatch) -> DamageMap | None:
    """The picture of a wrong output, `None` where there is no map."""
    if not mismatch.map:
        return None
    columns = max(len(row) for row in mismatch.map)
    marks = tuple(_mark(x, y, share) for y, row in enumerate(mismatch.map) for x, share in enumerate(row) if share > 0)
    tiles = sum(len(row) for row in mismatch.map)
    return DamageMap(
        columns=columns,
        rows=len(mismatch.map),
        marks=marks,
        first=_first_tile(mismatch, columns),
        caption=_caption(mismatch),
        label=f"Map of {mismatch.output}: {len(marks)} of {tiles} tiles have wrong elements; {mismatch.where}.",
        **_axes(mismatch),
    )


def _mark(x: int, y: int, share: int) -> Mark:
    side = CELL * (_SMALLEST + (1 - _SMALLEST) * math.sqrt(share / _PER_MILLE)) - 1
    inset = (CELL - side) / 2
    return Mark(round(x * CELL + inset, 2), round(y * CELL + inset, 2), round(side, 2), f"{share / 10:g} %")


def _is_vector(mismatch: Mismatch) -> bool:
    return len(mismatch.shape) < 2  # noqa: PLR2004  # a matrix has two dimensions


def _first_tile(mismatch: Mismatch, columns: int) -> tuple[int, int] | None:
    flat = 0
    for size, index in zip(mismatch.shape, mismatch.index, strict=False):
        flat = flat * size + index
    if _is_vector(mismatch):
        tile = flat // mismatch.tile[1]
        return tile % columns, tile // columns
    row, column = divmod(flat, mismatch.shape[-1])
    return column // mismatch.tile[1], row // mismatch.tile[0]


def _caption(mismatch: Mismatch) -> str:
    rows, columns = mismatch.tile
    if _is_vector(mismatch):
        what = "1 element" if columns == 1 else f"{columns} consecutive elements"
        return f"Each cell is {what}; rows of cells follow one another."
    return f"Each cell is {rows} × {columns} elements."


def _axes(mismatch: Mismatch) -> dict[str, tuple[str, str]]:
    if _is_vector(mismatch):
        return {"down": ("0", count(max(0, mismatch.total - 1))), "across": ("", "")}
    rows = mismatch.total // max(1, mismatch.shape[-1])
    return {
        "down": ("row 0", f"row {count(max(0, rows - 1))}"),
        "across": ("column 0", f"column {count(max(0, mismatch.shape[-1] - 1))}"),
    }


@dataclass(frozen=True)
class Tick:
    """A line of the scale."""

    x: float
    label: str
    is_reference: bool


@dataclass(frozen=True)
class Interval:
    """One measurement on the scale: its interval as a bar, its median as a dot."""

    low: float
    middle: float
    high: float
    label: str


@dataclass(frozen=True)
class RatioScale:
    """Ratios to the reference on a logarithmic axis; `x` runs from 0 to `width`."""

    width: int
    ticks: tuple[Tick, ...]
    intervals: tuple[Interval, ...]


_TICKS = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    0.8,
    0.9,
    1.0,
    1.1,
    1.25,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
    50.0,
    100.0,
    1000.0,
)
_TICKS_APART = 34.0
"""So many units a label needs."""
_NARROWEST = 1.25
"""The scale reaches so far to both sides of the reference, so that noise never looks like a difference."""


def ratio_scale(ratios: Sequence[tuple[float, float, float]], width: int = 200) -> RatioScale:
    """Place `(low, median, high)` on one logarithmic axis that always shows the reference, 1×."""
    positive = [value for triple in ratios for value in triple if value > 0]
    start, end = math.log(min([1 / _NARROWEST, *positive])) - 0.03, math.log(max([_NARROWEST, *positive])) + 0.03

    def place(value: float) -> float:
        return round((max(math.log(value), start) - start) / (end - start) * width, 1) if value > 0 else 0.0

    return RatioScale(
        width=width,
        ticks=_ticks(place, width),
        intervals=tuple(
            Interval(place(a), place(b), place(c), f"{ratio(b)} the reference ({interval(a, c)})") for a, b, c in ratios
        ),
    )


def _ticks(place: Callable[[float], float], width: int) -> tuple[Tick, ...]:
    """The reference's line, and as many others as have room for their labels, the roundest first."""
    placed = [Tick(place(1.0), "1×", is_reference=True)]
    for value in sorted(_TICKS, key=lambda value: (len(f"{value:g}"), abs(math.log(value)))):
        x = place(value)
        if 0 < x < width and all(abs(x - tick.x) >= _TICKS_APART for tick in placed):
            placed.append(Tick(x, f"{value:g}×", is_reference=False))
    return tuple(sorted(placed, key=lambda tick: tick.x))


@dataclass(frozen=True)
class Step:
    """One step of the climb: a column that rises, filled as far as its points go."""

    x: float
    y: float
    width: float
    height: float
    filled: float


def staircase(shares: Sequence[float], *, width: int = 960, height: int = 120) -> tuple[Step, ...]:
    """One step per rung, left to right; `shares` are the parts of the points got, 0 to 1."""
    if not shares:
        return ()
    across = min(width / len(shares), 144.0)
    lowest = height * 0.3
    rise = (height - lowest) / max(1, len(shares) - 1)
    steps = []
    for index, share in enumerate(shares):
        tall = lowest + rise * index
        steps.append(
            Step(
                x=round(index * across, 2),
                y=round(height - tall, 2),
                width=round(across - 4, 2),
                height=round(tall, 2),
                filled=round(tall * max(0.0, min(1.0, share)), 2),
            )
        )
    return tuple(steps)
