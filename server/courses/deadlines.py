"""When an assignment opens, is due and closes for one student: its own dates, and what an extension makes of them.

An extension never brings a date forward: where the assignment's own is later, that one holds. `uploaded_at` decides
lateness, never queue time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import Assignment, Course, Extension

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Deadlines:
    """Dates as they are for one student.

    Attributes:
        due_at: `None`: nothing is late.
        late_until: `None`: it never closes.
        extended: an extension has moved one of them.
        slack_s: an upload so many seconds after a date is still in time.
    """

    open_at: datetime | None
    due_at: datetime | None
    late_until: datetime | None
    extended: bool = False
    slack_s: int = 0

    def is_late(self, at: datetime) -> bool:
        """Whether an upload then is late."""
        return self.due_at is not None and at > self.due_at + self._slack

    def is_closed(self, at: datetime) -> bool:
        """Whether an upload then comes too late to count."""
        return self.late_until is not None and at > self.late_until + self._slack

    def days_late(self, at: datetime) -> int:
        """The days that an upload then is late; one that has begun counts as a whole one."""
        return days_late(at, self.due_at, slack_s=self.slack_s)

    def extended_to(self, due_at: datetime, late_until: datetime | None) -> Deadlines:
        """With an extension: of each date the later one."""
        due, late = _later(self.due_at, due_at), _later(self.late_until, late_until)
        return Deadlines(self.open_at, due, late, (due, late) != (self.due_at, self.late_until), self.slack_s)

    @property
    def _slack(self) -> timedelta:
        return timedelta(seconds=self.slack_s)


def days_late(uploaded_at: datetime, due_at: datetime | None, *, slack_s: int = 0) -> int:
    """The late days that a submission uploaded then would use; the slack is no day, and no part of one."""
    if due_at is None or uploaded_at <= due_at + timedelta(seconds=slack_s):
        return 0
    return math.ceil((uploaded_at - due_at - timedelta(seconds=slack_s)) / DAY)


def own_dates(assignment: Assignment, slack_s: int) -> Deadlines:
    """What the assignment itself says, for everybody without an extension."""
    return Deadlines(assignment.open_at, assignment.due_at, assignment.late_until, slack_s=slack_s)


def deadlines_of(session: Session, assignment: Assignment, user_id: int) -> Deadlines:
    """When the assignment is due and closes for this person."""
    query = (
        select(Course.slack_s, Extension)
        .outerjoin(
            Extension,
            (Extension.assignment_id == assignment.id)
            & (Extension.user_id == user_id)
            & Extension.withdrawn_at.is_(None),
        )
        .where(Course.id == assignment.course_id)
    )
    slack_s, extension = session.execute(query).one()
    return with_extension(own_dates(assignment, slack_s), extension)


def with_extension(own: Deadlines, extension: Extension | None) -> Deadlines:
    """The assignment's own dates, moved by an extension where there is one."""
    return own if extension is None else own.extended_to(extension.due_at, extension.late_until)


def deadlines_in(
    session: Session, course_id: int, user_ids: Sequence[int] | None = None
) -> Mapping[tuple[int, int], Deadlines]:
    """By user and assignment those that an extension has moved; where there is none, the assignment's own hold."""
    query = (
        select(Extension.user_id, Extension.due_at, Extension.late_until, Assignment, Course.slack_s)
        .join(Assignment, Assignment.id == Extension.assignment_id)
        .join(Course, Course.id == Extension.course_id)
        .where(Extension.course_id == course_id, Extension.withdrawn_at.is_(None))
    )
    if user_ids is not None:
        query = query.where(Extension.user_id.in_(user_ids))
    found = {
        (user_id, assignment.id): own_dates(assignment, slack_s).extended_to(due_at, late_until)
        for user_id, due_at, late_until, assignment, slack_s in session.execute(query)
    }
    return {place: dates for place, dates in found.items() if dates.extended}


def are_all_closed(session: Session, assignment: Assignment, now: datetime) -> bool:
    """Whether nothing that anybody uploads counts any more: it has an end, and that is over with every extension.

    What belongs to an archived course has ended.
    """
    course = session.get_one(Course, assignment.course_id)
    if course.archived_at is not None:
        return True
    own = own_dates(assignment, course.slack_s)
    query = select(Extension).where(Extension.assignment_id == assignment.id, Extension.withdrawn_at.is_(None))
    return own.is_closed(now) and all(with_extension(own, one).is_closed(now) for one in session.scalars(query))


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)
