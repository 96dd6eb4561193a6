"""Tables of people: read one, look at what it would do, and then do that or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from server import audit, csv_io, dirty_grades, ids
from server.accounts import accounts, links
from server.courses.courses import Membership
from server.csv_io import Trouble
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.messages import messages
from server.models import Course, Enrolment, Role, RosterImport, User
from server.roster import people
from server.roster.people import Person
from server.roster.plan import Known, Line, Plan, Step, plan

KEPT = timedelta(days=1)
"""A table that nobody agreed to is forgotten after so long."""


@dataclass(frozen=True)
class Preview:
    """A stored table with what it would do now."""

    row: RosterImport
    plan: Plan
    troubles: tuple[Trouble, ...]


def store(session: Session, member: Membership, data: bytes, *, filename: str, now: datetime) -> RosterImport:
    """Read a table and keep it until somebody agrees to what it would do.

    Raises:
        ForbiddenError: the member is no staff.
        InvalidInputError: it cannot be read as a table of people.
    """
    member.require_staff()
    found = people.read(data)
    session.execute(delete(RosterImport).where(RosterImport.created_at < now - KEPT))
    row = RosterImport(
        public_id=ids.public_id(),
        course_id=member.course.id,
        uploaded_by_id=member.user.id,
        filename=" ".join(filename.split())[-120:] or "a pasted table",
        people=[person.to_json() for person in found.lines],
        troubles=[[one.line, one.message, one.cells] for one in found.troubles],
        passed_over=[name[:80] for name in found.passed_over[:50]],
        created_at=now,
    )
    session.add(row)
    session.flush()
    return row


def look(session: Session, member: Membership, public_id: str) -> Preview:
    """What a stored table would do now.

    Raises:
        ForbiddenError: the member is no staff.
        NotFoundError: there is none, or it was forgotten.
    """
    member.require_staff()
    row = _find(session, member, public_id)
    found, _known = plan(session, member, _people(row))
    return Preview(row, found, tuple(Trouble(*trouble) for trouble in row.troubles))


def apply(session: Session, member: Membership, public_id: str, *, digest: str, now: datetime) -> RosterImport:
    """Do what was shown, if it is still what would happen; lines that were refused are left out, as shown.

    Args:
        digest: of the plan that was looked at.

    Raises:
        ForbiddenError: the member is no staff.
        NotFoundError: there is none, or it was forgotten.
        ConflictError: it was applied already, or the course changed since it was looked at; nothing is done.
    """
    member.require_staff()
    # One at a time: two tables that are applied at once would both enrol the same people.
    session.execute(select(Course.id).where(Course.id == member.course.id).with_for_update())
    row = _find(session, member, public_id, locked=True)
    if row.applied_at is not None:
        raise ConflictError("This table has been imported already.")
    found, have = plan(session, member, _people(row))
    if found.digest != digest:
        raise ConflictError("The course has changed since you opened this preview. Check the new preview.")
    for line in found.lines:
        _apply(session, member, line, have, now)
    counts = {step.value: count for step, count in found.counts.items()}
    row.troubles = [[one.line, one.message, one.cells] for one in _left_out(row, found)]
    row.applied_at, row.outcome, row.people = now, counts, []
    dirty_grades.grades(session, member.course.id)
    audit.record(
        session,
        action="roster.imported",
        subject=f"course:{member.course.slug}",
        actor=member.user,
        detail={"import": row.public_id, **counts},
    )
    return row


def left_out(session: Session, member: Membership, public_id: str) -> str:
    """The lines that are left out, or were, as a table to correct and read again: each with its number and the reason.

    Raises:
        ForbiddenError: the member is no staff.
        NotFoundError: there is none, or it was forgotten.
    """
    shown = look(session, member, public_id)
    names = [column.name for column in people.COLUMNS]
    rows = (
        [*(one.cells.get(name, "") for name in names), one.line, one.message]
        for one in _left_out(shown.row, shown.plan)
    )
    return csv_io.write([*names, "line", "why it was left out"], rows)


def _left_out(row: RosterImport, found: Plan) -> list[Trouble]:
    """Lines that cannot be read, and those that are refused."""
    troubles = [Trouble(*trouble) for trouble in row.troubles]
    refused = [line for line in found.lines if line.step is Step.refused]
    troubles += [Trouble(line.person.line, line.why, line.person.to_cells()) for line in refused]
    return sorted(troubles, key=lambda trouble: trouble.line)


def add_one(session: Session, member: Membership, person: Person, *, now: datetime) -> Step:
    """Put one person in the course as a table of one line would.

    Raises:
        ForbiddenError: the member is no staff.
        InvalidInputError: it cannot be done, and why.
    """
    member.require_staff()
    session.execute(select(Course.id).where(Course.id == member.course.id).with_for_update())
    found, have = plan(session, member, [person])
    line = found.lines[0]
    if line.step is Step.refused:
        raise InvalidInputError(line.why, field="email")
    _apply(session, member, line, have, now)
    dirty_grades.grades(session, member.course.id)
    return line.step


def _apply(session: Session, member: Membership, line: Line, have: Known, now: datetime) -> None:
    if line.step in {Step.unchanged, Step.refused}:
        return
    person = line.person
    user = have.users.get(person.email)
    if user is None:
        user = accounts.create_user(session, email=person.email, name=person.name, password=None, actor=member.user)
        links.invite(session, user, to=member.course.title, actor=member.user)
    elif line.step is Step.added:
        _tell(session, user, member.course)
    row = have.enrolments.get(user.id)
    if row is None:
        row = Enrolment(course_id=member.course.id, user_id=user.id, role=Role.student, created_at=now)
        session.add(row)
    row.role = person.role or row.role
    row.section = person.section or row.section or ""
    row.student_number = person.student_number or row.student_number or ""
    row.dropped_at = None
    _record(session, member, user.id, line, row)


def _tell(session: Session, user: User, course: Course) -> None:
    messages.send_mail(
        session,
        user,
        subject=f"You are in {course.title}",
        body=f"The staff of {course.title} added you to their course. Log in with your account.",
        url=f"/courses/{course.slug}",
    )


def _record(session: Session, member: Membership, user_id: int, line: Line, row: Enrolment) -> None:
    detail: dict[str, Any] = {
        "course": member.course.slug,
        "step": line.step.value,
        "role": row.role.value,
        "section": row.section,
        "changed": {name: list(pair) for name, pair in line.changes.items()},
    }
    audit.record(session, action="enrolment.imported", subject=f"user:{user_id}", actor=member.user, detail=detail)


def _people(row: RosterImport) -> Sequence[Person]:
    return [Person.from_json(item) for item in row.people]


def _find(session: Session, member: Membership, public_id: str, *, locked: bool = False) -> RosterImport:
    query = select(RosterImport).where(RosterImport.public_id == public_id, RosterImport.course_id == member.course.id)
    row = session.scalar(query.with_for_update() if locked else query)
    if row is None:
        raise NotFoundError("There is no such table; uploads are deleted after a day.")
    return row
