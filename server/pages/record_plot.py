"""What the chart of a record's history is drawn from (web/src/charts/record.js)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from server.leaderboard.records import Record
from server.pages.formats import ratio

MOST_DAYS = 6
"""Dates below the chart."""


@dataclass(frozen=True)
class RecordPlot:
    """The chart; times are in milliseconds since 1970, as scripts count them."""

    data: dict[str, Any]
    label: str


def record_plot(records: Sequence[Record], *, end: datetime | None, zone: str) -> RecordPlot | None:
    """How a record came down; `None` of fewer than two: one is told better in words.

    Args:
        records: oldest first.
        end: up to when the last one stands.
    """
    if len(records) < 2 or any(record.ratio <= 0 for record in records):  # noqa: PLR2004  # a line has two ends
        return None
    first = records[0].at
    last = max(records[-1].at, end or records[-1].at, first + timedelta(seconds=1))
    steps = [
        {"at": _ms(one.at), "ratio": one.ratio, "name": one.name, "title": f"{ratio(one.ratio)}, {one.name}"}
        for one in records
    ]
    days = [{"at": _ms(at), "label": text} for at, text in _days(first, last, ZoneInfo(zone))]
    return RecordPlot(
        {"records": steps, "end": _ms(last), "days": days},
        f"The record came down from {ratio(records[0].ratio)} to {ratio(records[-1].ratio)} the reference "
        f"in {len(records)} steps.",
    )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _days(first: datetime, last: datetime, zone: ZoneInfo) -> list[tuple[datetime, str]]:
    """Midnights on the course's clock; the hour where all is one day."""
    begin = first.astimezone(zone)
    if last - first < timedelta(days=1):
        return [(at, f"{at.astimezone(zone):%H:%M}") for at in (first, last)]
    days = math.ceil((last - first) / timedelta(days=1))
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    dates = [midnight + timedelta(days=number) for number in range(1, days + 1, math.ceil(days / MOST_DAYS))]
    return [(date, f"{date.day} {date:%b}") for date in dates if first <= date <= last]
