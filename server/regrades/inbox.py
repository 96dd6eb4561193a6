"""The staff's inbox of regrade requests, and what is counted of them. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session, joinedload

from server.courses import courses
from server.courses.courses import Membership
from server.models import Assignment, RegradeRequest, RequestState, Submission

PAGE = 50
SHOWN = 0.005
"""Points that differ by less look the same."""


class Box(StrEnum):
    """Which requests are listed."""

    open = "open"
    retiming = "retiming"
    """Open, and its times are being taken once more."""
    reopened = "reopened"
    accepted = "accepted"
    declined = "declined"
    all = "all"


@dataclass(frozen=True)
class Statistics:
    """What became of a course's requests: what people are told before they ask.

    Attributes:
        changed: of those that were answered, how many submissions have other points than when it was asked.
    """

    asked: int
    answered: int
    accepted: int
    changed: int


def listed(
    session: Session, member: Membership, box: Box, *, assignment: str = "", page: int = 1
) -> Sequence[RegradeRequest]:
    """One page of the requests, the oldest open ones first; a student's own ones only."""
    query = _of(member, box, assignment).options(
        joinedload(RegradeRequest.submission), joinedload(RegradeRequest.assignment), joinedload(RegradeRequest.user)
    )
    order = RegradeRequest.id if box in {Box.open, Box.retiming, Box.reopened} else RegradeRequest.id.desc()
    return session.scalars(query.order_by(order).limit(PAGE).offset((page - 1) * PAGE)).all()


def counts(session: Session, member: Membership, *, assignment: str = "") -> dict[Box, int]:
    """How many there are in each box, in one query."""
    sums = [func.sum(case((_in(box), 1), else_=0)) for box in Box]
    query = _of(member, Box.all, assignment).with_only_columns(*sums)
    row = session.execute(query).one()
    return {box: int(row[index] or 0) for index, box in enumerate(Box)}


def statistics(session: Session, course_id: int) -> Statistics:
    """Of all that was asked in a course."""
    answered = RegradeRequest.state != RequestState.open
    moved = func.abs(func.coalesce(Submission.points, 0.0) - func.coalesce(RegradeRequest.points_before, 0.0)) >= SHOWN
    accepted = RegradeRequest.state == RequestState.accepted
    sums = [func.sum(case((which, 1), else_=0)) for which in (answered, accepted, answered & moved)]
    row = session.execute(
        select(func.count(), *sums)
        .select_from(RegradeRequest)
        .join(Submission, Submission.id == RegradeRequest.submission_id)
        .where(RegradeRequest.course_id == course_id)
    ).one()
    return Statistics(*(int(number or 0) for number in row))


def assignments(session: Session, course_id: int) -> Sequence[Assignment]:
    """Those that somebody asked about, by rung."""
    asked = select(RegradeRequest.assignment_id).where(RegradeRequest.course_id == course_id)
    return session.scalars(select(Assignment).where(Assignment.id.in_(asked)).order_by(Assignment.rung)).all()


def _of(member: Membership, box: Box, assignment: str) -> Select[RegradeRequest]:
    query = select(RegradeRequest).where(RegradeRequest.course_id == member.course.id, _in(box))
    if not member.is_staff:
        query = query.where(RegradeRequest.user_id == member.user.id)
    if assignment:
        rung = courses.id_of_assignment(member.course.id, assignment)
        query = query.where(RegradeRequest.assignment_id.in_(rung))
    return query


def _in(box: Box) -> ColumnElement[bool]:
    is_open = RegradeRequest.state == RequestState.open
    conditions = {
        Box.open: is_open,
        Box.retiming: is_open & RegradeRequest.retiming,
        Box.reopened: is_open & RegradeRequest.reopened_at.is_not(None),
        Box.accepted: RegradeRequest.state == RequestState.accepted,
        Box.declined: RegradeRequest.state == RequestState.declined,
        Box.all: RegradeRequest.id.is_not(None),
    }
    return conditions[box]
