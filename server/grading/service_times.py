"""How long gradings take, by the newest attempts: dispatched to result, by what was graded and how much of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import Attempt, AttemptState, Lane, Mode, Submission, Work

NEWEST = 400
"""So many of a lane's newest finished attempts are looked at,"""
EACH = 50
"""and of them so many of each kind of job."""
ENOUGH = 5
"""With fewer of its own, a job borrows its lane's."""
GUESS_S = (2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Where a lane has graded nothing yet; wide, and said to be a guess."""


class Job(NamedTuple):
    """What attempts have to share to take about equally long."""

    version_id: int
    mode: Mode
    work: Work


@dataclass(frozen=True)
class ServiceTimes:
    """Seconds from dispatch to result, newest first: of each job, and of the lane."""

    by_job: Mapping[Job, tuple[float, ...]] = field(default_factory=dict)
    lane: tuple[float, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether there is anything but a guess."""
        return bool(self.lane)

    def of(self, job: Job) -> tuple[float, ...]:
        """What to draw this job's time from; never empty."""
        own = self.by_job.get(job, ())
        if len(own) >= ENOUGH:
            return own
        same_work = tuple(s for other, each in self.by_job.items() if other.work is job.work for s in each)
        return own + same_work or self.lane or GUESS_S

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Job, float]]) -> ServiceTimes:
        """Sort what was measured, newest first."""
        by_job: dict[Job, list[float]] = {}
        for job, seconds in rows:
            each = by_job.setdefault(job, [])
            if len(each) < EACH:
                each.append(seconds)
        lane = tuple(seconds for _, seconds in rows)
        return cls({job: tuple(each) for job, each in by_job.items()}, lane)


def service_times(session: Session, lane: Lane) -> ServiceTimes:
    """What the lane's newest finished attempts took."""
    query = (
        select(Submission.version_id, Submission.mode, Attempt.work, Attempt.dispatched_at, Attempt.finished_at)
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Attempt.lane == lane, Attempt.state == AttemptState.finished, Attempt.finished_at.is_not(None))
        .order_by(Attempt.id.desc())
        .limit(NEWEST)
    )
    return ServiceTimes.of_rows(
        [
            (Job(version_id, mode, work), max(0.0, (ended - began).total_seconds()))
            for version_id, mode, work, began, ended in session.execute(query)
            if ended is not None
        ]
    )
