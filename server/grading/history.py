"""How long people waited: from upload to first verdict, hour by hour."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.models import Lane, Line, Result, Submission

HOURS = 24
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class HourOfWaits:
    """Those that were handed in within one hour and have their verdict; superseded ones were promised nothing.

    Attributes:
        begins_at: a full hour.
        high_s: nine of ten waited no longer.
    """

    begins_at: datetime
    count: int
    median_s: float
    high_s: float


def waits_by_hour(session: Session, lane: Lane, now: datetime) -> list[HourOfWaits]:
    """The last `HOURS` hours, oldest first; an hour in which nothing came counts 0."""
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    hours: dict[datetime, list[float]] = {this_hour - _HOUR * back: [] for back in reversed(range(HOURS))}
    query = (
        select(Submission.uploaded_at, func.min(Result.created_at))
        .join(Result, Result.submission_id == Submission.id)
        .where(
            Submission.lane == lane,
            Submission.uploaded_at >= min(hours),
            Submission.uploaded_at <= now,
            Submission.line != Line.superseded,
        )
        .group_by(Submission.id, Submission.uploaded_at)
    )
    for uploaded_at, first_at in session.execute(query):
        hour = uploaded_at.replace(minute=0, second=0, microsecond=0)
        hours[hour].append(max(0.0, (first_at - uploaded_at).total_seconds()))
    return [_hour(begins_at, waits) for begins_at, waits in hours.items()]


def _hour(begins_at: datetime, waits: Sequence[float]) -> HourOfWaits:
    if not waits:
        return HourOfWaits(begins_at, 0, 0.0, 0.0)
    ordered = sorted(waits)
    return HourOfWaits(begins_at, len(ordered), statistics.median(ordered), ordered[round(0.9 * (len(ordered) - 1))])
