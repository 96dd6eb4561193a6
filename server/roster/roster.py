"""Who is in a course, looked up and changed one by one. Nobody is deleted: the work of who drops it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, contains_eager

from server import audit, dirty_grades
from server.courses.courses import Membership
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.models import Course, Enrolment, Role
from server.roster import people
from server.roster.listing import Filter, Roster, everybody, roster, sections, students

__all__ = [
    "Filter",
    "Roster",
    "Wanted",
    "add_again",
    "change",
    "drop",
    "everybody",
    "find",
    "roster",
    "sections",
    "seen",
    "students",
]

MAX_REASON = 500


@dataclass(frozen=True)
class Wanted:
    """What somebody is to be in the course."""

    role: Role
    section: str
    student_number: str


def seen(row: Enrolment) -> str:
    """A name for what an enrolment is, so that who changes it says what they saw."""
    plain = f"{row.role.value}\0{row.section}\0{row.student_number}\0{row.dropped_at is not None}"
    return hashlib.sha256(plain.encode()).hexdigest()[:32]


def find(session: Session, member: Membership, user_id: int) -> Enrolment:
    """What somebody is in the course, with `user` loaded.

    Raises:
        ForbiddenError: the member is no staff.
        NotFoundError: they never were in it.
    """
    member.require_staff()
    row = session.scalar(_one(member.course.id, user_id))
    if row is None:
        raise NotFoundError("There is no such person in this course.")
    return row


def change(session: Session, member: Membership, user_id: int, wanted: Wanted, *, seen_as: str) -> Enrolment:
    """Give somebody another role, section or student id.

    Raises:
        ForbiddenError: a TA decides about staff, or somebody about their own role.
        NotFoundError: they never were in the course.
        InvalidInputError: section or student id cannot be taken, or is somebody else's.
        ConflictError: somebody else changed it meanwhile, or nobody would be left to run the course.
    """
    section = people.checked_section(wanted.section)
    number = people.checked_number(wanted.student_number)
    row = _locked(session, member, user_id, seen_as)
    _check_may(session, member, row, wanted.role)
    _check_number(session, row, number)
    before = {"role": row.role.value, "section": row.section, "student_id": row.student_number}
    row.role, row.section, row.student_number = wanted.role, section, number
    after = {"role": row.role.value, "section": section, "student_id": number}
    changed = {name: [before[name], after[name]] for name in before if before[name] != after[name]}
    if changed:
        _record(session, member, row, "enrolment.changed", changed=changed)
    return row


def drop(session: Session, member: Membership, user_id: int, *, seen_as: str, reason: str, now: datetime) -> Enrolment:
    """Take somebody out of the course: it is closed to them at once, and their work is kept.

    Raises:
        ForbiddenError: a TA decides about staff, or somebody about themselves.
        NotFoundError: they never were in the course.
        ConflictError: somebody else changed it meanwhile, or nobody would be left to run the course.
    """
    row = _locked(session, member, user_id, seen_as)
    if row.user_id == member.user.id:
        raise ForbiddenError("You cannot remove yourself from the course.")
    _check_may(session, member, row, Role.student)
    row.dropped_at = now
    _record(session, member, row, "enrolment.dropped", reason=reason)
    return row


def add_again(session: Session, member: Membership, user_id: int, *, seen_as: str) -> Enrolment:
    """Let somebody who dropped the course back in, with everything they had.

    Raises:
        ForbiddenError: a TA decides about staff.
        NotFoundError: they never were in the course.
        ConflictError: somebody else did it already.
    """
    row = _locked(session, member, user_id, seen_as)
    _check_may(session, member, row, row.role)
    row.dropped_at = None
    _record(session, member, row, "enrolment.added_again")
    return row


def _check_may(session: Session, member: Membership, row: Enrolment, role: Role) -> None:
    if not member.is_instructor and {row.role, role} != {Role.student}:
        raise ForbiddenError(people.STAFF_ONLY_BY_INSTRUCTORS)
    if row.user_id == member.user.id and role is not row.role:
        raise ForbiddenError("You cannot change your own role.")
    if row.role is Role.instructor and row.dropped_at is None and role is not Role.instructor:
        query = select(func.count()).where(
            Enrolment.course_id == row.course_id,
            Enrolment.role == Role.instructor,
            Enrolment.dropped_at.is_(None),
            Enrolment.id != row.id,
        )
        if not session.scalars(query).one():
            raise ConflictError("A course needs an instructor, and this is the only one left.")


def _check_number(session: Session, row: Enrolment, number: str) -> None:
    query = select(Enrolment.id).where(
        Enrolment.course_id == row.course_id, Enrolment.student_number == number, Enrolment.id != row.id
    )
    if number and session.scalar(query.limit(1)) is not None:
        raise InvalidInputError(f"Somebody else in this course has the student id {number}.", field="student_number")


def _record(
    session: Session,
    member: Membership,
    row: Enrolment,
    action: str,
    *,
    changed: Mapping[str, list[str]] | None = None,
    reason: str = "",
) -> None:
    dirty_grades.grades(session, row.course_id, row.user_id)
    audit.record(
        session,
        action=action,
        subject=f"user:{row.user_id}",
        actor=member.user,
        detail={"course": member.course.slug, "role": row.role.value, "changed": dict(changed or {})},
        reason=reason.strip()[:MAX_REASON],
    )


def _locked(session: Session, member: Membership, user_id: int, seen_as: str) -> Enrolment:
    member.require_staff()
    # The course's row first: whether an instructor is left is decided by one at a time.
    session.execute(select(Course.id).where(Course.id == member.course.id).with_for_update())
    query = _one(member.course.id, user_id).with_for_update(of=Enrolment).execution_options(populate_existing=True)
    row = session.scalar(query)
    if row is None:
        raise NotFoundError("There is no such person in this course.")
    if seen(row) != seen_as:
        raise ConflictError("Somebody else changed this person's entry while you did. Reload the page.")
    return row


def _one(course_id: int, user_id: int) -> Select[Enrolment]:
    return (
        select(Enrolment)
        .join(Enrolment.user)
        .where(Enrolment.course_id == course_id, Enrolment.user_id == user_id)
        .options(contains_eager(Enrolment.user))
    )
