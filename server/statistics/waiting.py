"""What waits for the staff of a course, in numbers: two queries, however large the course is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from autograder.contract import State, Verdict
from server import db
from server.courses.courses import Membership
from server.grading import review_queue
from server.models import (
    Assignment,
    Course,
    Enrolment,
    Extension,
    Mode,
    RegradeRequest,
    RequestState,
    Role,
    RubricSheet,
    Submission,
    WriteUp,
)

_IS_STUDENT = (Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))


@dataclass(frozen=True)
class UngradedWriteups:
    """How many students wrote about an assignment, can no longer change it, and were not graded by its rubric yet."""

    slug: str
    title: str
    count: int


@dataclass(frozen=True)
class Waiting:
    """How much of each kind waits.

    Attributes:
        failed: students' submissions without a result after the last attempt, which is the platform's fault; none that
            a newer one with a result on the same lane has made good.
    """

    appeals: int
    held: int
    findings: int
    requests: int
    failed: int
    writeups: tuple[UngradedWriteups, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits for staff."""
        return not (self.appeals or self.held or self.findings or self.requests or self.failed or self.writeups)


def waiting(session: Session, member: Membership) -> Waiting:
    """What waits now.

    Raises:
        ForbiddenError: to a student.
    """
    member.require_staff()
    course_id = member.course.id
    requests = select(func.count()).where(
        RegradeRequest.course_id == course_id, RegradeRequest.state == RequestState.open
    )
    counted = (*review_queue.counts_of(course_id), requests, _failed(course_id))
    row = session.execute(select(*(query.scalar_subquery() for query in counted))).one()
    appeals, held, findings, asked, broken = (int(number) for number in row)
    return Waiting(appeals, held, findings, asked, broken, _writeups(session, member.course))


def _failed(course_id: int) -> Select[int]:
    newer = aliased(Submission)
    made_good = exists().where(
        newer.user_id == Submission.user_id,
        newer.assignment_id == Submission.assignment_id,
        newer.lane == Submission.lane,
        newer.state == State.done,
        newer.verdict != Verdict.grader_error,
        newer.mode == Mode.submission,
        newer.id > Submission.id,
    )
    enrolled = (Enrolment.course_id == Submission.course_id) & (Enrolment.user_id == Submission.user_id)
    return (
        select(func.count(Submission.id))
        .join(Enrolment, enrolled)
        .where(
            Submission.course_id == course_id,
            Submission.state == State.failed,
            Submission.mode == Mode.submission,
            *_IS_STUDENT,
            ~made_good,
        )
    )


def _writeups(session: Session, course: Course) -> tuple[UngradedWriteups, ...]:
    count = func.count(WriteUp.user_id.distinct())
    graded = (RubricSheet.assignment_id == WriteUp.assignment_id) & (RubricSheet.user_id == WriteUp.user_id)
    enrolled = (Enrolment.course_id == WriteUp.course_id) & (Enrolment.user_id == WriteUp.user_id)
    extended = (
        (Extension.assignment_id == WriteUp.assignment_id)
        & (Extension.user_id == WriteUp.user_id)
        & Extension.withdrawn_at.is_(None)
    )
    query = (
        select(Assignment.slug, Assignment.title, count)
        .join(WriteUp, WriteUp.assignment_id == Assignment.id)
        .join(Enrolment, enrolled)
        .outerjoin(RubricSheet, graded)
        .outerjoin(Extension, extended)
        .where(
            WriteUp.course_id == course.id,
            RubricSheet.id.is_(None),
            *_IS_STUDENT,
            _is_settled(db.now(session) - timedelta(seconds=course.slack_s)),
        )
        .group_by(Assignment.id, Assignment.slug, Assignment.title, Assignment.rung)
        .order_by(Assignment.rung)
    )
    return tuple(UngradedWriteups(*row) for row in session.execute(query))


def _is_settled(before: datetime) -> ColumnElement[bool]:
    """Whether an assignment closed `before` then, extensions included; where it never closes, whether it was due.

    Without any date there is nothing to wait for. `server.courses.deadlines` says what an extension makes of the dates.
    """
    own, theirs = Assignment, Extension

    def is_over(date: InstrumentedAttribute[Any], extended: InstrumentedAttribute[Any]) -> ColumnElement[bool]:
        return (date < before) & (theirs.id.is_(None) | (extended < before))

    never_closes = own.late_until.is_(None) | (theirs.id.is_not(None) & theirs.late_until.is_(None))
    return is_over(own.late_until, theirs.late_until) | (
        never_closes & (own.due_at.is_(None) | is_over(own.due_at, theirs.due_at))
    )
