"""Counts as bars, drawn on the server: a picture with its numbers in words, and a table beside it says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from server.pages.formats import plural, points, ratio
from server.statistics.numbers import Bin
from server.statistics.parts import Hour

WIDTH, TOP, BASE = 520, 16.0, 120.0
_LABEL_APART = 56.0
_FEW = 8


@dataclass(frozen=True)
class Bar:
    """One bin; `label` says it in words."""

    x: float
    width: float
    top: float
    height: float
    label: str


@dataclass(frozen=True)
class Bars:
    """A chart of counts.

    Attributes:
        most: of the highest bar, for the axis.
        ticks: places on the axis below, with what stands there.
        due: where the due date is; `None` outside.
    """

    title: str
    most: int
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    due: float | None = None

    @property
    def label(self) -> str:
        """What a reader who cannot see it is told."""
        return f"{self.title}: {plural(len(self.bars), 'bar')}, the highest {self.most:,}. The table has the numbers."


def of_points(title: str, bins: Sequence[Bin]) -> Bars:
    """Students by points."""
    words = [f"{points(one.low)} to {points(one.high)} points: {plural(one.count, 'student')}" for one in bins]
    return _bars(
        title, [one.count for one in bins], words, [(0, bins[0].low), (len(bins), bins[-1].high)] if bins else []
    )


def of_ratios(title: str, bins: Sequence[Bin]) -> Bars:
    """Students by their best ratio to the reference, on a logarithmic axis."""
    words = [f"{ratio(one.low)} to {ratio(one.high)}: {plural(one.count, 'student')}" for one in bins]
    chart = _bars(title, [one.count for one in bins], words, [])
    if not bins:
        return chart
    across = _across(bins)
    places = [(index * across, ratio(one.low)) for index, one in enumerate(bins)] + [
        (len(bins) * across, ratio(bins[-1].high))
    ]
    return Bars(title, chart.most, chart.bars, _apart(places))


def of_counts(title: str, counts: Sequence[tuple[str, int]], what: str = "student") -> Bars:
    """One bar for each word."""
    words = [f"{name}: {plural(count, what)}" for name, count in counts]
    chart = _bars(title, [count for _, count in counts], words, [])
    across = _across(counts)
    places = [((index + 0.5) * across, name) for index, (name, _) in enumerate(counts)]
    return Bars(title, chart.most, chart.bars, _apart(places))


def of_hours(title: str, hours: Sequence[Hour], zone: str, due_at: datetime | None) -> Bars:
    """What was handed in, by hour, towards the due date; days are marked below."""
    counts = [hour.submissions + hour.runs for hour in hours]
    local = [hour.begins_at.astimezone(ZoneInfo(zone)) for hour in hours]
    words = [
        f"{at:%a} {at.day} {at:%b}, {at:%H:%M}: {plural(hour.submissions, 'submission')}, {plural(hour.runs, 'run')}"
        for at, hour in zip(local, hours, strict=True)
    ]
    chart = _bars(title, counts, words, [])
    across = _across(hours)
    days = [
        (index * across, f"{at:%a} {at.day} {at:%b}") for index, at in enumerate(local) if at.hour == 0 or index == 0
    ]
    return Bars(title, chart.most, chart.bars, _apart(days), _due(hours, due_at, across))


def _across(counts: Sequence[object]) -> float:
    """The room of one bar: a few bars are not made as wide as the picture."""
    return WIDTH / max(_FEW, len(counts))


def _due(hours: Sequence[Hour], due_at: datetime | None, across: float) -> float | None:
    if not hours or due_at is None:
        return None
    x = (due_at - hours[0].begins_at).total_seconds() / 3600 * across
    return round(x, 1) if 0 <= x <= WIDTH else None


def _bars(title: str, counts: Sequence[int], words: Sequence[str], ends: Sequence[tuple[int, float]]) -> Bars:
    most = max(counts, default=0)
    across = _across(counts)
    gap = 2.0 if across > 6 else 0.5  # noqa: PLR2004  # narrow bars would be gaps only
    bars = tuple(
        Bar(
            x=round(index * across + gap / 2, 2),
            width=round(max(0.5, across - gap), 2),
            top=round(BASE - (BASE - TOP) * count / most, 1),
            height=round((BASE - TOP) * count / most, 1),
            label=word,
        )
        for index, (count, word) in enumerate(zip(counts, words, strict=True))
        if count
    )
    return Bars(title, most, bars, tuple((round(index * across, 1), points(value)) for index, value in ends))


def _apart(places: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    """As many labels as have room, from the left."""
    kept: list[tuple[float, str]] = []
    for x, text in places:
        if not kept or x - kept[-1][0] >= _LABEL_APART:
            kept.append((round(x, 1), text))
    return tuple(kept)
