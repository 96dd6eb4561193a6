"""Other due dates and more late days for some students. What was given stays to be read, also when it is taken back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from server import audit, dirty_grades
from server.courses import clock
from server.courses.courses import Membership
from server.courses.deadlines import own_dates
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.gradebook.people import assignments_in, checked_reason, students_of
from server.gradebook.recompute import lock_people
from server.messages.messages import notify
from server.models import Assignment, Course, Extension, LateDayGrant, NotificationKind, User

MOST_DAYS = 366
"""An extension moves a date by so much at most: a longer one is a typing error."""
MOST_LATE_DAYS = 100


def give(
    session: Session,
    member: Membership,
    *,
    assignment_ids: Collection[int],
    user_ids: Collection[int],
    reason: str,
    now: datetime,
    due_at: datetime | None = None,
    days: int | None = None,
    late_until: datetime | None = None,
) -> list[Extension]:
    """Let these students hand these assignments in later; what they had for them before is replaced.

    Args:
        due_at: the new due date; or
        days: so many days after the assignment's own, at the same hour of the course's clock.
        late_until: when it closes for them; without it as long after the new due date as it does for everybody.

    Raises:
        NotFoundError: a student or an assignment is not of this course.
        InvalidInputError: a date is none that an extension can have, or there is no reason.
    """
    member.require_staff()
    reason = checked_reason(reason)
    rows = assignments_in(session, member.course, assignment_ids)
    people = students_of(session, member.course.id, user_ids)
    if not rows or not people:
        raise InvalidInputError("Choose at least one student and one assignment.", field="user_ids")
    dates = {row.id: _dates(row, member.course.timezone, due_at, days, late_until) for row in rows}
    lock_people(session, member.course.id, [user.id for user in people])
    _end(session, member, user_ids, assignment_ids, now)
    made = [
        Extension(
            course_id=member.course.id, assignment_id=row.id, user_id=user.id, due_at=dates[row.id][0],
            late_until=dates[row.id][1], reason=reason, actor_id=member.user.id, at=now,
        )
        for row in rows for user in people
    ]  # fmt: skip
    session.add_all(made)
    session.flush()
    titles = {row.id: row for row in rows}
    for extension in made:
        _tell(session, member, titles[extension.assignment_id], extension)
    return made


def withdraw(session: Session, member: Membership, extension_id: int, *, reason: str, now: datetime) -> Extension:
    """Take an extension back: the assignment's own dates hold again.

    Raises:
        NotFoundError: there is none in this course.
        ConflictError: it was taken back or replaced meanwhile.
    """
    member.require_staff()
    reason = checked_reason(reason)
    row = session.get(Extension, extension_id)
    if row is None or row.course_id != member.course.id:
        raise NotFoundError("There is no such extension.")
    lock_people(session, member.course.id, [row.user_id])
    session.refresh(row)
    if row.withdrawn_at is not None:
        raise ConflictError("This extension was withdrawn or replaced meanwhile.")
    row.withdrawn_at, row.withdrawn_by_id = now, member.user.id
    dirty_grades.grades(session, row.course_id, row.user_id)
    _record(session, member, "extension.withdrawn", row, reason)
    return row


def of_course(
    session: Session,
    course_id: int,
    *,
    user_id: int | None = None,
    assignment_id: int | None = None,
    most: int | None = None,
) -> Sequence[Extension]:
    """Extensions of a course, also those that ended, the newest first, with assignment, user and actor."""
    query = (
        select(Extension)
        .where(Extension.course_id == course_id)
        .options(joinedload(Extension.assignment), joinedload(Extension.user), joinedload(Extension.actor))
        .order_by(Extension.id.desc())
        .limit(most)
    )
    if user_id is not None:
        query = query.where(Extension.user_id == user_id)
    if assignment_id is not None:
        query = query.where(Extension.assignment_id == assignment_id)
    return session.scalars(query).all()


def grant_late_days(
    session: Session, member: Membership, *, user_ids: Collection[int], days: int, reason: str, now: datetime
) -> list[LateDayGrant]:
    """Give these students more late days for the term; fewer, where `days` is below 0.

    Raises:
        NotFoundError: one of them is no student of this course.
        InvalidInputError: it is no number of days that can be meant, or there is no reason.
    """
    member.require_staff()
    reason = checked_reason(reason)
    if not days or abs(days) > MOST_LATE_DAYS:
        raise InvalidInputError(f"Give or take 1 to {MOST_LATE_DAYS} late days.", field="days")
    people = students_of(session, member.course.id, user_ids)
    lock_people(session, member.course.id, [user.id for user in people])
    made = []
    for user in people:
        row = LateDayGrant(
            course_id=member.course.id, user_id=user.id, days=days, reason=reason, actor_id=member.user.id, at=now
        )
        session.add(row)
        made.append(row)
        dirty_grades.grades(session, member.course.id, user.id)
        _record_grant(session, member, user, days, reason)
    session.flush()
    _tell_of_days(session, member.course, made)
    return made


def grants_of(session: Session, course_id: int, *, user_id: int | None = None) -> Sequence[LateDayGrant]:
    """Late days that staff gave or took, the newest first, with user and actor."""
    query = (
        select(LateDayGrant)
        .where(LateDayGrant.course_id == course_id)
        .options(joinedload(LateDayGrant.user), joinedload(LateDayGrant.actor))
        .order_by(LateDayGrant.id.desc())
    )
    return session.scalars(query if user_id is None else query.where(LateDayGrant.user_id == user_id)).all()


def _dates(
    row: Assignment, zone: str, due_at: datetime | None, days: int | None, late_until: datetime | None
) -> tuple[datetime, datetime | None]:
    """The dates that this assignment gets."""
    if row.due_at is None:
        raise InvalidInputError(f"{row.title} has no due date that could be extended.", field="assignment_ids")
    if (due_at is None) == (days is None):
        raise InvalidInputError("Give either a date or a number of days.", field="due_at")
    try:
        due_at = clock.days_later(row.due_at, zone, days) if days is not None else due_at
    except OverflowError:
        due_at = datetime.max.replace(tzinfo=row.due_at.tzinfo)
    assert due_at is not None  # noqa: S101  # one of the two was said
    if late_until is None and row.late_until is not None:
        late_until = max(row.late_until, due_at + (row.late_until - row.due_at)) if _near(row, due_at) else due_at
    _check(row, due_at, late_until, "days" if days is not None else "due_at")
    return due_at, late_until


def _near(row: Assignment, due_at: datetime) -> bool:
    return row.due_at is not None and due_at - row.due_at <= timedelta(days=MOST_DAYS)


def _check(row: Assignment, due_at: datetime, late_until: datetime | None, field: str) -> None:
    if not _near(row, due_at):
        raise InvalidInputError(f"That is more than {MOST_DAYS} days after {row.title} is due.", field=field)
    if late_until is not None and late_until < due_at:
        raise InvalidInputError("The closing date has to be after the due date.", field="late_until")
    own = own_dates(row, 0)
    if not own.extended_to(due_at, late_until).extended:
        raise InvalidInputError(
            f"That is not after {row.title} is due: an extension can only move dates to later.", field=field
        )


def _end(
    session: Session, member: Membership, user_ids: Collection[int], assignment_ids: Collection[int], now: datetime
) -> None:
    """What they had before ends."""
    query = select(Extension).where(
        Extension.user_id.in_(user_ids), Extension.assignment_id.in_(assignment_ids), Extension.withdrawn_at.is_(None)
    )
    for row in session.scalars(query.execution_options(populate_existing=True)):
        row.withdrawn_at, row.withdrawn_by_id = now, member.user.id
    session.flush()


def _tell(session: Session, member: Membership, assignment: Assignment, extension: Extension) -> None:
    dirty_grades.grades(session, extension.course_id, extension.user_id)
    _record(session, member, "extension.given", extension, extension.reason)
    notify(
        session,
        [extension.user_id],
        NotificationKind.extension_granted,
        course_id=extension.course_id,
        title=f"You have an extension for {assignment.title}",
        url=f"/courses/{member.course.slug}/assignments/{assignment.slug}",
        key=f"extension:{extension.id}",
    )


def _record(session: Session, member: Membership, action: str, row: Extension, reason: str) -> None:
    late_until = row.late_until.isoformat() if row.late_until else None
    audit.record(
        session,
        action=action,
        subject=f"assignment:{row.assignment_id}",
        actor=member.user,
        detail={"user": row.user_id, "due_at": row.due_at.isoformat(), "late_until": late_until},
        reason=reason,
    )


def _record_grant(session: Session, member: Membership, user: User, days: int, reason: str) -> None:
    audit.record(
        session,
        action="late_days.granted",
        subject=f"course:{member.course.slug}",
        actor=member.user,
        detail={"user": user.id, "days": days},
        reason=reason,
    )


def _tell_of_days(session: Session, course: Course, made: Sequence[LateDayGrant]) -> None:
    for row in made:
        word = "late day" if abs(row.days) == 1 else "late days"
        title = f"You have {row.days} more {word}" if row.days > 0 else f"You have {-row.days} fewer {word}"
        notify(
            session,
            [row.user_id],
            NotificationKind.extension_granted,
            course_id=course.id,
            title=title,
            url=f"/courses/{course.slug}/grades",
            key=f"late-days:{row.id}",
        )
