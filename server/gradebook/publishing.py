"""Publish the grades of an assignment, and withdraw them.

What the autograder found is a student's at once: their submissions, points and quiz. What is published is the grade:
until then students read what it comes to so far, marked as not final, without what staff set or gave by a rubric.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from server import audit
from server.courses.courses import Membership
from server.errors import ConflictError
from server.gradebook import grade_inputs as facts_of
from server.messages.messages import expected, notify
from server.models import (
    Assignment,
    Enrolment,
    Grade,
    Mode,
    NotificationKind,
    Review,
    Role,
    State,
    Submission,
)

_OPEN = (State.received, State.queued, State.running, State.superseded)


@dataclass(frozen=True)
class Counts:
    """What publishing an assignment's grades would show, and what is still open there.

    Attributes:
        empty: students with neither a submission that counts nor points.
        waiting: submissions that have no points yet; `held`: that wait for a person.
    """

    students: int
    empty: int
    overridden: int
    waiting: int
    held: int


@dataclass(frozen=True)
class Effect:
    """What publishing an assignment's grades would do now.

    Attributes:
        mails: students who get an e-mail; `told`: who are told at all.
        due_at: for everybody; `latest` is the last moment at which anybody can hand in, `None`: there is none.
        open_for: students who can still hand in.
    """

    counts: Counts
    told: int
    mails: int
    due_at: datetime | None
    latest: datetime | None
    open_for: int


def effect(session: Session, member: Membership, assignment: Assignment, *, now: datetime) -> Effect:
    """What `publish` would do; nothing is changed."""
    member.require_staff()
    course_id = assignment.course_id
    told = expected(session, _ids(course_id), NotificationKind.grades_published, course_id=course_id)
    facts = facts_of.read(session, course_id)
    detail = next(one for one in facts.details if one.row.id == assignment.id)
    dates = [facts.deadlines(user_id, detail) for user_id in _students(session, course_id)]
    ends = [one.late_until for one in dates]
    return Effect(
        counts=counts(session, course_id).get(assignment.id, Counts(0, 0, 0, 0, 0)),
        told=told.people,
        mails=told.mails,
        due_at=detail.row.due_at,
        latest=None if None in ends else max((end for end in ends if end), default=None),
        open_for=sum(not one.is_closed(now) for one in dates),
    )


def publish(session: Session, member: Membership, assignment: Assignment, *, now: datetime) -> int:
    """Let students read these grades, and tell them; how many were told.

    Raises:
        ConflictError: somebody has published them meanwhile.
    """
    row = _locked(session, member, assignment)
    if row.grades_published_at is not None:
        raise ConflictError("These grades are published already.")
    row.grades_published_at = now
    people = _students(session, assignment.course_id)
    _record(session, member, row, "grades.published", students=len(people))
    return notify(
        session,
        people,
        NotificationKind.grades_published,
        course_id=assignment.course_id,
        title=f"Grades for {assignment.title} are published",
        url=f"/courses/{member.course.slug}/grades",
        key=f"grades:{assignment.id}:{now.isoformat(timespec='seconds')}",
    )


def withdraw(session: Session, member: Membership, assignment: Assignment, *, reason: str = "") -> None:
    """Let these grades be open again; nothing of them is lost.

    Raises:
        ConflictError: they are not published.
    """
    row = _locked(session, member, assignment)
    if row.grades_published_at is None:
        raise ConflictError("These grades are not published.")
    row.grades_published_at = None
    students = len(_students(session, assignment.course_id))
    _record(session, member, row, "grades.withdrawn", students=students, reason=reason)


def counts(session: Session, course_id: int) -> dict[int, Counts]:
    """By assignment, with one query for each kind of thing."""
    found = {}
    open_ = _open_submissions(session, course_id)
    nothing = Grade.submission_id.is_(None) & (Grade.points == 0) & Grade.override_points.is_(None)
    query = (
        select(Grade.assignment_id, func.count(), _number(nothing), _number(Grade.override_points.is_not(None)))
        .join(Enrolment, (Enrolment.user_id == Grade.user_id) & (Enrolment.course_id == Grade.course_id))
        .where(Grade.course_id == course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))
        .group_by(Grade.assignment_id)
    )
    for assignment_id, students, empty, overridden in session.execute(query):
        found[assignment_id] = Counts(students, empty, overridden, *open_.get(assignment_id, (0, 0)))
    return found


def _open_submissions(session: Session, course_id: int) -> dict[int, tuple[int, int]]:
    waiting = _by_assignment(session, course_id, Submission.state.in_(_OPEN) & Submission.points.is_(None))
    held = _by_assignment(session, course_id, Submission.review == Review.held)
    return {one: (waiting.get(one, 0), held.get(one, 0)) for one in waiting.keys() | held.keys()}


def _by_assignment(session: Session, course_id: int, which: ColumnElement[bool]) -> dict[int, int]:
    """How many submissions are so. They are few, and counted here: grouping would lead SQLite to another index."""
    query = select(Submission.assignment_id).where(
        Submission.course_id == course_id, Submission.mode == Mode.submission, which
    )
    return Counter(session.scalars(query))


def _number(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count().filter(condition)


def _locked(session: Session, member: Membership, assignment: Assignment) -> Assignment:
    member.require_staff()
    query = select(Assignment).where(Assignment.id == assignment.id).with_for_update(key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).one()


def _students(session: Session, course_id: int) -> list[int]:
    return list(session.scalars(_ids(course_id)))


def _ids(course_id: int) -> Select[int]:
    return select(Enrolment.user_id).where(
        Enrolment.course_id == course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None)
    )


def _record(
    session: Session, member: Membership, row: Assignment, action: str, *, students: int, reason: str = ""
) -> None:
    audit.record(
        session,
        action=action,
        subject=f"assignment:{row.id}",
        actor=member.user,
        detail={"students": students},
        reason=reason.strip()[:1000],
    )
