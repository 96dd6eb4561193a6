"""Who in a course has grades, as whoever decides about them names them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.errors import InvalidInputError, NotFoundError
from server.models import Assignment, Course, Enrolment, Role, User

REASON_CHARS = 1000


def students_of(session: Session, course_id: int, user_ids: Collection[int]) -> Sequence[User]:
    """These students of the course.

    Raises:
        NotFoundError: one of them is none, or dropped it.
    """
    query = (
        select(User)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(
            Enrolment.course_id == course_id,
            Enrolment.role == Role.student,
            Enrolment.dropped_at.is_(None),
            User.id.in_(user_ids),
        )
        .order_by(User.id)
    )
    found = session.scalars(query).all()
    if len(found) != len(set(user_ids)):
        raise NotFoundError("There is no such student in this course.")
    return found


def assignments_in(session: Session, course: Course, assignment_ids: Collection[int]) -> Sequence[Assignment]:
    """These assignments of the course, by rung.

    Raises:
        NotFoundError: one of them is not the course's.
    """
    query = (
        select(Assignment)
        .where(Assignment.course_id == course.id, Assignment.id.in_(assignment_ids))
        .order_by(Assignment.rung, Assignment.id)
    )
    found = session.scalars(query).all()
    if len(found) != len(set(assignment_ids)):
        raise NotFoundError("There is no such assignment.")
    return found


def checked_reason(reason: str, *, most: int = REASON_CHARS) -> str:
    """Why staff decide something, as it is kept: the one check of every such reason.

    Raises:
        InvalidInputError: it is empty or too long.
    """
    reason = reason.replace("\0", "").replace("\r\n", "\n").strip()
    if not reason or len(reason) > most:
        raise InvalidInputError(
            f"Give a reason of 1 to {most:,} characters; it is stored with the change.", field="reason"
        )
    return reason
