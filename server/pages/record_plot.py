"""The geometry of a record's history: a step line, time across, ratio to the reference down a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from server.leaderboard.records import Record
from server.pages.formats import figure, ratio

WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 48.0, 704.0, 16.0, 188.0
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
_TICKS_APART = 20.0
_DAYS_APART = 120.0
_LABEL, _LINE, _NAME = 160.0, 16.0, 18
"""How wide and how high a label may be, and how many characters of a name fit into it."""
_ROOM = 1.06
"""Above and below what is drawn."""


@dataclass(frozen=True)
class Point:
    """A record, and its title; `label` is written beside it where there is room, to its left if `label_left`."""

    x: float
    y: float
    title: str
    label: str
    label_left: bool = False


@dataclass(frozen=True)
class Axis:
    """A line of the grid and what is written at it."""

    at: float
    label: str
    is_reference: bool = False


@dataclass(frozen=True)
class RecordPlot:
    """All that is drawn; `path` is the step line, as the `d` of a path."""

    path: str
    points: tuple[Point, ...]
    ratios: tuple[Axis, ...]
    days: tuple[Axis, ...]
    label: str
    width: int = WIDTH
    height: int = HEIGHT
    left: float = LEFT
    right: float = RIGHT
    bottom: float = BOTTOM


def record_plot(records: Sequence[Record], *, end: datetime | None, zone: str) -> RecordPlot | None:
    """The picture of how a record came down; `None` of fewer than two: one is told better in words.

    Args:
        records: oldest first.
        end: up to when the last one stands.
    """
    if len(records) < 2 or any(record.ratio <= 0 for record in records):  # noqa: PLR2004  # a line has two ends
        return None
    first, last = records[0].at, max(records[-1].at, end or records[-1].at)
    across = _across(first, last)
    down = _down([record.ratio for record in records])
    return RecordPlot(
        path=_steps([(across(record.at), down(record.ratio)) for record in records], across(last)),
        points=_points(records, across, down),
        ratios=_ratios(down),
        days=_days(first, last, across, zone),
        label=f"The record came down from {ratio(records[0].ratio)} to {ratio(records[-1].ratio)} the reference "
        f"in {len(records)} steps.",
    )


def _across(first: datetime, last: datetime) -> Callable[[datetime], float]:
    whole = max((last - first).total_seconds(), 1.0)
    return lambda at: round(LEFT + (at - first).total_seconds() / whole * (RIGHT - LEFT), 1)


def _down(ratios: Sequence[float]) -> Callable[[float], float]:
    """The reference is always in the picture."""
    low, high = math.log(min([1.0, *ratios]) / _ROOM), math.log(max([1.0, *ratios]) * _ROOM)
    return lambda value: round(TOP + (high - math.log(value)) / (high - low) * (BOTTOM - TOP), 1)


def _steps(points: Sequence[tuple[float, float]], end: float) -> str:
    x, y = points[0]
    return f"M{x} {y}" + "".join(f"H{x}V{y}" for x, y in points[1:]) + f"H{end}"


def _points(
    records: Sequence[Record], across: Callable[[datetime], float], down: Callable[[float], float]
) -> tuple[Point, ...]:
    """Newest first they get their labels, as far as those do not touch each other."""
    points: list[Point] = []
    labels: list[tuple[float, float]] = []
    for record in reversed(records):
        x, y = across(record.at), down(record.ratio)
        is_left = x + _LABEL > RIGHT
        begin = x - _LABEL if is_left else x
        has_room = all(abs(begin - left) >= _LABEL or abs(y - at) >= _LINE for left, at in labels)
        if has_room:
            labels.append((begin, y))
        label = f"{_short(record.name)} {figure(record.ratio)}×" if has_room else ""
        points.append(Point(x, y, f"{ratio(record.ratio)}, {record.name}", label, is_left))
    return tuple(reversed(points))


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _ratios(down: Callable[[float], float]) -> tuple[Axis, ...]:
    placed = [Axis(down(1.0), "1×", is_reference=True)]
    for value in sorted(_TICKS, key=lambda value: (len(f"{value:g}"), abs(math.log(value)))):
        y = down(value)
        if TOP <= y <= BOTTOM and all(abs(y - axis.at) >= _TICKS_APART for axis in placed):
            placed.append(Axis(y, f"{value:g}×"))
    return tuple(sorted(placed, key=lambda axis: axis.at))


def _days(first: datetime, last: datetime, across: Callable[[datetime], float], zone: str) -> tuple[Axis, ...]:
    """Midnights on the course's clock, so many that their labels do not touch; the hour where all is one day."""
    place = ZoneInfo(zone)
    begin, end = first.astimezone(place), last.astimezone(place)
    if (last - first) < timedelta(days=1):
        return (Axis(across(first), f"{begin:%H:%M}"), Axis(across(last), f"{end:%H:%M}"))
    days = math.ceil((last - first) / timedelta(days=1))
    every = max(1, math.ceil(days / ((RIGHT - LEFT) / _DAYS_APART)))
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    dates = [midnight + timedelta(days=number) for number in range(1, days + 1, every)]
    return tuple(Axis(across(date), f"{date.day} {date:%b}") for date in dates if first <= date <= last)
