"""What a table of people would do to a course, line by line, before anything is done."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.courses.courses import Membership
from server.models import Enrolment, Role, User
from server.roster.people import STAFF_ONLY_BY_INSTRUCTORS, Person

_AT_ONCE = 500


class Step(StrEnum):
    """What happens to the person of one line."""

    added = "added"
    """They are new to the course. Whether there was an account is not said: staff of one course must not learn from
    answers who else is here."""
    returns = "returns"
    """They had dropped the course."""
    changed = "changed"
    unchanged = "unchanged"
    refused = "refused"


@dataclass(frozen=True)
class Line:
    """One line of the plan.

    Attributes:
        changes: what → before and after.
        why: for a line that is refused.
    """

    person: Person
    step: Step
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """The whole table.

    Attributes:
        missing: names of students of the course who are not in the table; nothing is done to them.
    """

    lines: tuple[Line, ...]
    missing: tuple[str, ...]

    @property
    def counts(self) -> Counter[Step]:
        """How many lines of each step."""
        return Counter(line.step for line in self.lines)

    @property
    def mails(self) -> int:
        """How many e-mails applying it would send: one for each who is new to the course."""
        return self.counts[Step.added]

    @property
    def changed(self) -> int:
        """How many people applying it would add or change."""
        return sum(line.step not in {Step.unchanged, Step.refused} for line in self.lines)

    @property
    def digest(self) -> str:
        """A name for what was shown: what is applied is that, or nothing."""
        plain = [[line.person.to_json(), line.step.value, line.changes, line.why] for line in self.lines]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Known:
    """Who is there already, by e-mail address, and what they are in this course."""

    users: dict[str, User]
    enrolments: dict[int, Enrolment]


def known(session: Session, course_id: int, people: Sequence[Person]) -> Known:
    """Look up everybody of the table, and everybody of the course, with their `user`."""
    users: dict[str, User] = {}
    emails = [person.email for person in people]
    for start in range(0, len(emails), _AT_ONCE):
        some = emails[start : start + _AT_ONCE]
        users.update({user.email: user for user in session.scalars(select(User).where(User.email.in_(some)))})
    enrolments = session.scalars(select(Enrolment).where(Enrolment.course_id == course_id))
    return Known(users, {enrolment.user_id: enrolment for enrolment in enrolments})


def plan(session: Session, member: Membership, people: Sequence[Person]) -> tuple[Plan, Known]:
    """What would happen now."""
    have = known(session, member.course.id, people)
    numbers = {row.student_number: row.user_id for row in have.enrolments.values() if row.student_number}
    lines = tuple(_line(member, person, have, numbers) for person in people)
    listed = {user.id for user in have.users.values()}
    absent = [row for row in have.enrolments.values() if row.user_id not in listed and _is_student(row)]
    return Plan(lines, tuple(_names(session, [row.user_id for row in absent]))), have


def _line(member: Membership, person: Person, have: Known, numbers: dict[str, int]) -> Line:
    user = have.users.get(person.email)
    enrolment = have.enrolments.get(user.id) if user else None
    if why := _refusal(member, person, user, enrolment):
        return Line(person, Step.refused, why=why)
    owner = numbers.get(person.student_number)
    if owner is not None and (user is None or owner != user.id):
        return Line(person, Step.refused, why=f"Somebody else has the student id {person.student_number}.")
    if enrolment is None:
        return Line(person, Step.added) if person.name else Line(person, Step.refused, why=_NAMELESS)
    changes = changes_of(person, enrolment)
    if enrolment.dropped_at is not None:
        return Line(person, Step.returns, changes)
    return Line(person, Step.changed if changes else Step.unchanged, changes)


_NAMELESS = "A person who is new to the course needs a name."


def changes_of(person: Person, enrolment: Enrolment) -> dict[str, tuple[str, str]]:
    """What the line says otherwise than it is; what it does not say stays."""
    said = {
        "role": (enrolment.role.value, person.role.value if person.role else ""),
        "section": (enrolment.section, person.section),
        "student id": (enrolment.student_number, person.student_number),
    }
    return {name: pair for name, pair in said.items() if pair[1] and pair[0] != pair[1]}


def _refusal(member: Membership, person: Person, user: User | None, enrolment: Enrolment | None) -> str:
    if user is not None and user.disabled_at is not None:
        return "This address cannot be added. Ask an admin why."
    roles = {person.role or Role.student, enrolment.role if enrolment else Role.student}
    if not member.is_instructor and roles != {Role.student}:
        return STAFF_ONLY_BY_INSTRUCTORS
    if user is not None and user.id == member.user.id and person.role not in {None, member.role}:
        return "You cannot change your own role."
    return ""


def _is_student(row: Enrolment) -> bool:
    return row.role is Role.student and row.dropped_at is None


def _names(session: Session, user_ids: Sequence[int]) -> list[str]:
    found: list[str] = []
    for start in range(0, len(user_ids), _AT_ONCE):
        some = user_ids[start : start + _AT_ONCE]
        found += session.scalars(select(User.name).where(User.id.in_(some)))
    return sorted(found)
