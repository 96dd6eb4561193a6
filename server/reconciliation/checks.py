"""What has to hold of the rows, whatever happened to the processes: one query each, which finds those that break it.

Each query is one snapshot, so that a submission which moves while it is looked at is seen before or after, never in
between. None of them reads a source; `deep` in `server.reconciliation.runs` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, String, and_, case, cast, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from server.grading.states import LIVE
from server.models import Assignment, Attempt, AttemptState, Mode, Result, State, Submission, User, Verdict

EXAMPLES = 5
"""So many of the rows that break a rule are named; the rest is counted."""
HASH_CHARS = len("sha256:") + 64

Courses = Collection[int] | None
"""Ids of the courses to look at; `None` is all of them."""


@dataclass(frozen=True)
class Problem:
    """Rows that break one rule.

    Attributes:
        check: the rule's name.
        message: what it says of a sound row.
        count: how many rows break it.
        examples: receipt numbers, or names, of the first ones.
    """

    check: str
    message: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """One rule: what it says, and the query for the names of rows that break it."""

    name: str
    says: str
    broken: Callable[[], Select[Any]]

    def problem(self, session: Session, courses: Courses) -> Problem | None:
        """What breaks it, `None` if nothing does."""
        query = self.broken()
        if courses is not None:
            query = query.where(Submission.course_id.in_(courses))
        found = query.subquery()
        name = found.c[0]
        rows = session.execute(select(name, func.count().over()).order_by(name).limit(EXAMPLES)).all()
        if not rows:
            return None
        return Problem(self.name, self.says, rows[0][1], tuple(str(row[0]) for row in rows))


def broken_rules(session: Session, courses: Courses = None) -> list[Problem]:
    """Every rule that something breaks."""
    found = (check.problem(session, courses) for check in CHECKS)
    return [problem for problem in found if problem is not None]


def _gaps() -> Select[Any]:
    # Numbers are unique and positive: the highest one is the count, unless one is missing.
    return (
        select(Assignment.slug + " of " + User.handle + ", " + cast(Submission.mode, String))
        .select_from(Submission)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(User, User.id == Submission.user_id)
        .group_by(Assignment.slug, User.handle, Submission.assignment_id, Submission.user_id, Submission.mode)
        .having(func.max(Submission.number) != func.count())
    )


def _done_without_result() -> Select[Any]:
    mismatch = or_(
        Result.id.is_(None), Result.submission_id != Submission.id, Result.verdict != Submission.verdict,
        Submission.verdict.is_(None), Submission.finished_at.is_(None),
    )  # fmt: skip
    return _submissions().outerjoin(Result, Result.id == Submission.result_id).where(
        Submission.state == State.done, mismatch
    )  # fmt: skip


def _failed_charged() -> Select[Any]:
    # One whose check passed, and whose times could not be taken, keeps its verdict and its points for correctness.
    without_result = and_(
        Submission.result_id.is_(None),
        or_(Submission.points.is_not(None), Submission.verdict.is_distinct_from(Verdict.grader_error)),
    )
    charged = or_(without_result, Submission.finished_at.is_(None))
    return _submissions().where(Submission.state == State.failed, charged)


def _running_without_attempt() -> Select[Any]:
    live = (
        select(func.count()).select_from(Attempt)
        .where(Attempt.submission_id == Submission.id, Attempt.state.in_(LIVE)).scalar_subquery()
    )  # fmt: skip
    return _submissions().where(Submission.state == State.running, live != 1)


def _attempt_without_running() -> Select[Any]:
    return (
        select(Attempt.public_id)
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Attempt.state.in_(LIVE), Submission.state != State.running)
    )


def _attempts_missing() -> Select[Any]:
    return (
        select(Submission.public_id)
        .join(Attempt, Attempt.submission_id == Submission.id)
        .group_by(Submission.public_id)
        .having(func.max(Attempt.fence) != func.count())
    )


def _attempt_results() -> Select[Any]:
    """A finished attempt has one result, and no other has any."""
    expected = case((Attempt.state == AttemptState.finished, 1), else_=0)
    return (
        select(Attempt.public_id)
        .join(Submission, Submission.id == Attempt.submission_id)
        .outerjoin(Result, and_(Result.attempt_id == Attempt.id, Result.submission_id == Attempt.submission_id))
        .group_by(Attempt.public_id, Attempt.state)
        .having(func.count(Result.id) != expected)
    )


def _result_elsewhere() -> Select[Any]:
    return (
        select(Submission.public_id)
        .join(Result, Result.submission_id == Submission.id)
        .join(Attempt, Attempt.id == Result.attempt_id)
        .where(Attempt.submission_id != Result.submission_id)
    )


def _superseded_wrongly() -> Select[Any]:
    newer = aliased(Submission)
    sound = exists().where(
        newer.id == Submission.superseded_by_id, newer.user_id == Submission.user_id,
        newer.assignment_id == Submission.assignment_id, newer.mode == Submission.mode,
        newer.number > Submission.number, Submission.mode == Mode.submission,
    )  # fmt: skip
    claims = or_(Submission.superseded_by_id.is_not(None), Submission.state == State.superseded)
    return _submissions().where(claims, ~sound)


def _source_missing() -> Select[Any]:
    return _submissions().where(or_(func.length(Submission.source_hash) != HASH_CHARS, _no_bytes()))


def _no_bytes() -> ColumnElement[bool]:
    return func.length(Submission.source) == 0


def _submissions() -> Select[Any]:
    return select(Submission.public_id)


CHECKS = (
    Check("numbers_gapless", "Receipts are numbered without a gap.", _gaps),
    Check("done_has_result", "Every submission that is done has a result of its own.", _done_without_result),
    Check("failed_is_free", "A failure on our side has cost no points.", _failed_charged),
    Check("running_has_attempt", "Every running submission has exactly one live attempt.", _running_without_attempt),
    Check("attempt_has_running", "Every live attempt belongs to a running submission.", _attempt_without_running),
    Check("attempts_gapless", "The attempts of a submission are numbered without a gap.", _attempts_missing),
    Check("attempt_has_result", "Every finished attempt has one result, and no other has any.", _attempt_results),
    Check("result_has_attempt", "Every result belongs to an attempt at its own submission.", _result_elsewhere),
    Check("superseded_by_newer", "Only a student's own newer submission supersedes one.", _superseded_wrongly),
    Check("source_present", "Every submission has its source and the source's hash.", _source_missing),
)
