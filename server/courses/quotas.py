"""How much a student may still hand in: submissions per day on the course's clock, practice runs per hour.

A group has the submissions of one student; runs are everybody's own. What failed and was ours never counts, nor does
what was cancelled before anybody graded it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from autograder.contract import Mode, State, Verdict
from server.courses import clock
from server.errors import TooManyError
from server.models import Assignment, Course, Submission

_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Left:
    """What one student, and their group, have left of one assignment's quotas. `None` for a number: there is no limit.

    Attributes:
        submissions, submissions_per_day: left of how many until `resets_at`, the course's next midnight.
        runs, runs_per_hour: left of how many; the next is possible at `run_at` (now, where there is one left).
    """

    submissions: int | None
    submissions_per_day: int | None
    resets_at: datetime
    runs: int | None
    runs_per_hour: int | None
    run_at: datetime


def left(
    session: Session, assignment: Assignment, user_id: int, now: datetime, *, together: Collection[int] = ()
) -> Left:
    """What this student may still hand in. Staff have no quota; do not ask for them.

    Args:
        together: everybody in their group; nobody, where they are on their own.
    """
    zone = session.scalars(select(Course.timezone).where(Course.id == assignment.course_id)).one()
    midnight, resets_at = clock.midnights(now, zone)
    people = {user_id, *together}
    submitted = _submitted(session, assignment, people, midnight)
    in_hour = _ran(session, assignment, user_id, now - _HOUR)
    used_up = assignment.runs_per_hour is not None and in_hour >= assignment.runs_per_hour
    return Left(
        submissions=_rest(assignment.submissions_per_day, submitted),
        submissions_per_day=assignment.submissions_per_day,
        resets_at=resets_at,
        runs=_rest(assignment.runs_per_hour, in_hour),
        runs_per_hour=assignment.runs_per_hour,
        run_at=_free_at(session, assignment, user_id, now) if used_up else now,
    )


def check(
    session: Session,
    assignment: Assignment,
    user_id: int,
    mode: Mode,
    now: datetime,
    *,
    together: Collection[int] = (),
) -> None:
    """Refuse one more where none is left. The people's rows are locked, so that two at once cannot both be the last.

    Args:
        together: everybody in their group.

    Raises:
        TooManyError: the quota is used up; it says until when.
    """
    limit = assignment.submissions_per_day if mode is Mode.submission else assignment.runs_per_hour
    if limit is None:
        return
    have = left(session, assignment, user_id, now, together=together)
    if mode is Mode.submission and have.submissions == 0:
        raise TooManyError(
            f"{_who(together)} used all {limit} submissions of today. Practice runs still work. The next "
            "day begins at midnight in the course's time zone. A submission that failed on our side is not counted.",
            retry_after_s=max(1.0, (have.resets_at - now).total_seconds()),
        )
    if mode is Mode.run and have.runs == 0:
        wait_s = max(1.0, (have.run_at - now).total_seconds())
        raise TooManyError(
            f"You have used all {limit} practice runs of this hour. The next is possible in {wait_s / 60:.0f} min.",
            retry_after_s=wait_s,
        )


def _who(together: Collection[int]) -> str:
    return "Your group has" if len(together) > 1 else "You have"


def _submitted(session: Session, assignment: Assignment, people: Collection[int], midnight: datetime) -> int:
    """Submissions since midnight; nothing is counted where there is no quota."""
    if assignment.submissions_per_day is None:
        return 0
    query = select(func.count()).where(*_theirs(assignment, people), Submission.mode == Mode.submission)
    return session.scalars(query.where(Submission.uploaded_at >= midnight)).one()


def _ran(session: Session, assignment: Assignment, user_id: int, an_hour_ago: datetime) -> int:
    """Runs of the last hour; nothing is counted where there is no quota."""
    if assignment.runs_per_hour is None:
        return 0
    query = select(func.count()).where(*_theirs(assignment, [user_id]), Submission.mode == Mode.run)
    return session.scalars(query.where(Submission.uploaded_at > an_hour_ago)).one()


def _free_at(session: Session, assignment: Assignment, user_id: int, now: datetime) -> datetime:
    """When fewer than the limit lie within the last hour: an hour after the oldest of the newest so many."""
    query = (
        select(Submission.uploaded_at)
        .where(*_theirs(assignment, [user_id]), Submission.mode == Mode.run, Submission.uploaded_at > now - _HOUR)
        .order_by(Submission.uploaded_at.desc())
        .offset((assignment.runs_per_hour or 1) - 1)
        .limit(1)
    )
    at = session.scalar(query)
    return at + _HOUR if at is not None else now


def _theirs(assignment: Assignment, people: Collection[int]) -> tuple[ColumnElement[bool], ...]:
    not_ours = or_(Submission.verdict.is_(None), Submission.verdict != Verdict.grader_error)
    return (
        Submission.assignment_id == assignment.id,
        Submission.user_id.in_(sorted(people)),
        Submission.state.not_in((State.failed, State.cancelled)),
        not_ours,
    )


def _rest(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)
