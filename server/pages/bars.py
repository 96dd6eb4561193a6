"""What a chart of bars is drawn from (web/src/charts/bars.js); a table beside it says the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from server.grading.history import HourOfWaits
from server.pages.formats import count, duration, plural, points, ratio
from server.statistics.numbers import Bin
from server.statistics.parts import Hour

_EVERY_HOURS = 6
_LEAST_SCALE_S = 10.0
"""Waits of a few seconds are all low, not all high."""


@dataclass(frozen=True)
class Bar:
    """One bar: its place, from 0, and `label`, which says it in words; `middle` is a line across it."""

    at: int
    value: float
    label: str
    middle: float | None = None


@dataclass(frozen=True)
class Place:
    """What stands below the bars, in bars from the left."""

    at: float
    label: str


@dataclass(frozen=True)
class Bars:
    """A chart.

    Attributes:
        of: how many bars have room; empty ones are not in `bars`.
        most: where the axis ends; `top` says it in words.
        due: where the due date is, in bars from the left; `None` outside.
    """

    title: str
    of: int
    bars: tuple[Bar, ...]
    most: float
    top: str
    places: tuple[Place, ...]
    due: float | None = None

    @property
    def label(self) -> str:
        """What a reader who cannot see it is told."""
        return f"{self.title}: {plural(len(self.bars), 'bar')}, the highest {self.top}. The table has the numbers."

    @property
    def data(self) -> dict[str, Any]:
        """What the chart is drawn from."""
        return dataclasses.asdict(self)


def of_points(title: str, bins: Sequence[Bin]) -> Bars:
    """Students by points."""
    words = [f"{points(one.low)} to {points(one.high)} points: {plural(one.count, 'student')}" for one in bins]
    ends = [(0.0, points(bins[0].low)), (len(bins), points(bins[-1].high))] if bins else []
    return _bars(title, [one.count for one in bins], words, ends)


def of_ratios(title: str, bins: Sequence[Bin]) -> Bars:
    """Students by their best ratio to the reference, on a logarithmic axis."""
    words = [f"{ratio(one.low)} to {ratio(one.high)}: {plural(one.count, 'student')}" for one in bins]
    edges = [*(one.low for one in bins), *(one.high for one in bins[-1:])]
    return _bars(title, [one.count for one in bins], words, [(at, ratio(edge)) for at, edge in enumerate(edges)])


def of_counts(title: str, counts: Sequence[tuple[str, int]], what: str = "student") -> Bars:
    """One bar for each word."""
    words = [f"{name}: {plural(number, what)}" for name, number in counts]
    places = [(at + 0.5, name) for at, (name, _) in enumerate(counts)]
    return _bars(title, [number for _, number in counts], words, places)


def of_hours(title: str, hours: Sequence[Hour], zone: str, due_at: datetime | None) -> Bars:
    """What was handed in, by hour, towards the due date; days are marked below."""
    local = [hour.begins_at.astimezone(ZoneInfo(zone)) for hour in hours]
    words = [
        f"{at:%a} {at.day} {at:%b}, {at:%H:%M}: {plural(hour.submissions, 'submission')}, {plural(hour.runs, 'run')}"
        for at, hour in zip(local, hours, strict=True)
    ]
    days = [(place, f"{at:%a} {at.day} {at:%b}") for place, at in enumerate(local) if at.hour == 0 or place == 0]
    chart = _bars(title, [hour.submissions + hour.runs for hour in hours], words, days)
    return dataclasses.replace(chart, due=_due(hours, due_at))


def of_waits(title: str, hours: Sequence[HourOfWaits], zone: str) -> Bars:
    """The waits of some hours in a row: up to what nine of ten waited at most, with a line at the median."""
    most = max([_LEAST_SCALE_S, *(hour.high_s for hour in hours)])
    local = [hour.begins_at.astimezone(ZoneInfo(zone)) for hour in hours]
    bars = tuple(
        Bar(
            place, hour.high_s,
            f"{at:%H:%M}: {plural(hour.count, 'submission')}, median {duration(hour.median_s)}, "
            f"90th percentile {duration(hour.high_s)}",
            hour.median_s,
        )
        for place, (at, hour) in enumerate(zip(local, hours, strict=True))
        if hour.count
    )  # fmt: skip
    places = tuple(Place(place, f"{at:%H:%M}") for place, at in enumerate(local) if at.hour % _EVERY_HOURS == 0)
    return Bars(title, len(hours), bars, most, duration(most), places)


def _due(hours: Sequence[Hour], due_at: datetime | None) -> float | None:
    if not hours or due_at is None:
        return None
    at = (due_at - hours[0].begins_at).total_seconds() / 3600
    return round(at, 2) if 0 <= at <= len(hours) else None


def _bars(title: str, counts: Sequence[int], words: Sequence[str], places: Sequence[tuple[float, str]]) -> Bars:
    most = max(counts, default=0)
    bars = (Bar(at, number, word) for at, (number, word) in enumerate(zip(counts, words, strict=True)) if number)
    return Bars(title, len(counts), tuple(bars), most, count(most), tuple(Place(*place) for place in places))
