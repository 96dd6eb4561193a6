"""The one ranking query: every student's best valid result on each leaderboard, and who shares a rank.

A result is valid if it counts, passed everything, has a speed that is settled, and staff do not hold or reject it. It
is a student's who is in the course and whose account is open. It stands on the board of its assignment and lane as long
as what grades is the same (`AssignmentVersion.grading_hash`): ratios to two references, or over two sets of cases, are
never mixed. Pages, the API, exports, badges and the nightly confirmation all read this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import aliased

from autograder.contract import Language
from server.models import (
    Assignment,
    AssignmentVersion,
    Enrolment,
    Mode,
    Result,
    Review,
    Role,
    Submission,
    User,
    Verdict,
)

Rows = Select[*tuple[Any, ...]]
ORDER = (Result.ratio, Submission.uploaded_at, Submission.id)
"""Of two equal results the earlier one stands first."""


@dataclass(frozen=True)
class Selection:
    """Of whom and of what the results are; everything, where nothing is said.

    Attributes:
        section: only students of this section.
        as_of: only what was handed in by then.
    """

    language: Language | None = None
    section: str | None = None
    as_of: datetime | None = None


EVERYTHING = Selection()


def best(selection: Selection, *where: ColumnElement[bool], more: Sequence[Any] = ()) -> Rows:
    """Each student's best valid result on each board that `where` leaves, by board and then best first.

    Args:
        more: columns of `Submission` and `Result` beside the usual ones.
    """
    own = [Submission.assignment_id, Submission.lane, Submission.user_id]
    place = func.row_number().over(partition_by=own, order_by=ORDER).label("own_place")
    inner = valid(select(Submission.id, place), selection, *where).subquery()
    return (
        select(*COLUMNS, *more)
        .join_from(inner, Submission, Submission.id == inner.c.id)
        .join(Result, Result.id == Submission.result_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, _enrolled())
        .where(inner.c.own_place == 1)
        .order_by(Submission.assignment_id, Submission.lane, *ORDER)
    )


def records(selection: Selection, *where: ColumnElement[bool]) -> Rows:
    """What was faster than everything valid before it, on the board that `where` leaves, oldest first."""
    in_time = (Submission.uploaded_at, Submission.id)
    before = func.min(Result.ratio).over(order_by=in_time, rows=(None, -1)).label("before")
    inner = valid(select(Submission.id, Result.ratio, before), selection, *where).subquery()
    return (
        select(*COLUMNS)
        .join_from(inner, Submission, Submission.id == inner.c.id)
        .join(Result, Result.id == Submission.result_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, _enrolled())
        .where(or_(inner.c.before.is_(None), inner.c.ratio < inner.c.before))
        .order_by(*in_time)
    )


COLUMNS = (
    Submission.id,
    Submission.public_id,
    Submission.assignment_id,
    Submission.lane,
    Submission.user_id,
    Submission.language,
    Submission.uploaded_at,
    Submission.confirmations,
    Result.ratio,
    Result.ratio_low,
    Result.ratio_high,
    Result.time_us,
    User.handle,
    User.name,
    Enrolment.show_name,
    Enrolment.section,
)
"""What both queries tell of an entry."""


def valid(query: Rows, selection: Selection, *where: ColumnElement[bool]) -> Rows:
    """`query` over `Submission` and `Result`, of what may stand on a leaderboard.

    The result that counts is looked at, whatever the submission's state: while staff grade it again, its entry stays.
    """
    current = aliased(AssignmentVersion)
    query = (
        query.select_from(Submission)
        # Not by `Result.id` itself: SQLite would take the wide rows by their number instead of the narrow index.
        .join(Result, (Result.submission_id == Submission.id) & (Result.id + 0 == Submission.result_id))
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(current, current.id == Assignment.version_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, _enrolled())
        .where(
            AssignmentVersion.grading_hash == current.grading_hash,
            Submission.mode == Mode.submission,
            counts(),
            User.disabled_at.is_(None),
            Enrolment.role == Role.student,
            Enrolment.dropped_at.is_(None),
            *where,
        )
    )
    if selection.language is not None:
        query = query.where(Submission.language == selection.language)
    if selection.section is not None:
        query = query.where(Enrolment.section == selection.section)
    if selection.as_of is not None:
        query = query.where(Submission.uploaded_at <= selection.as_of)
    return query


def counts() -> ColumnElement[bool]:
    """Whether a submission's result has a speed that nobody doubts."""
    return (
        Submission.review.in_((Review.none, Review.cleared))
        & or_(Result.settled, Submission.review == Review.cleared)
        & (Result.verdict == Verdict.passed)
        & Result.ratio.is_not(None)
    )


def _enrolled() -> ColumnElement[bool]:
    return (Enrolment.user_id == Submission.user_id) & (Enrolment.course_id == Submission.course_id)


def ranks(intervals: Sequence[tuple[float, float]]) -> list[int]:
    """The ranks of entries that stand best first: a group lasts while intervals begin before its leader's ends.

    Args:
        intervals: the ends of each entry's interval.
    """
    found: list[int] = []
    leader_high = float("-inf")
    for place, (low, high) in enumerate(intervals, start=1):
        if found and low <= leader_high:
            found.append(found[-1])
        else:
            leader_high = high
            found.append(place)
    return found
