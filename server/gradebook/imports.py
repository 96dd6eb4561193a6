"""Points for many students at once, from a table: looked at first, then set as they were looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server import csv_io
from server.courses.courses import Membership
from server.csv_io import Column, Line, Trouble
from server.errors import ConflictError, InvalidInputError
from server.gradebook import overrides
from server.gradebook.people import checked_reason
from server.gradebook.recompute import lock_people
from server.models import Assignment, Enrolment, Grade, Role, User

MOST_LINES = 1000
COLUMNS = (
    Column("email", ("SIS Login ID", "login", "mail"), required=False),
    Column("student number", ("SIS User ID", "number"), required=False),
    Column("assignment", ("slug", "rung")),
    Column("points", ("score", "grade")),
    Column("reason", ("why", "comment"), required=False),
)


@dataclass(frozen=True)
class Wanted:
    """Points that a line asks for."""

    user_id: int
    assignment_id: int
    points: float
    reason: str


@dataclass(frozen=True)
class Change:
    """What a line would do.

    Attributes:
        old: the points as they are now; `revision` is that of the grade.
        above: more than the assignment can give.
    """

    wanted: Wanted
    name: str
    title: str
    old: float
    above: bool
    revision: int
    published: bool


@dataclass(frozen=True)
class Plan:
    """What a table would do.

    Attributes:
        unchanged: lines whose points staff have set already.
        digest: names these changes of these grades, and nothing else.
    """

    changes: tuple[Change, ...]
    unchanged: int
    troubles: tuple[Trouble, ...]
    passed_over: tuple[str, ...]
    digest: str

    @property
    def above(self) -> int:
        """How many changes give more than their assignment can."""
        return sum(change.above for change in self.changes)

    @property
    def rows(self) -> str:
        """The changes as a form carries them to `apply`."""
        asked = [change.wanted for change in self.changes]
        return json.dumps([[one.user_id, one.assignment_id, one.points, one.reason] for one in asked])


def read(session: Session, member: Membership, data: bytes, *, reason: str = "") -> Plan:
    """What a table of student, assignment and points would do. Nothing is changed.

    Args:
        reason: for lines that give none.

    Raises:
        InvalidInputError: it cannot be read as a table, or has no column that names students.
    """
    member.require_staff()
    table = csv_io.read(data, COLUMNS)
    if table.lines and not {"email", "student number"} & table.lines[0].cells.keys():
        raise InvalidInputError(
            "The table needs a column “email” or “student number” that names the students.", field="file"
        )
    if len(table.lines) > MOST_LINES:
        raise InvalidInputError(f"At most {MOST_LINES:,} grades can be set at once.", field="file")
    book = _book(session, member.course.id)
    wanted, troubles = _all_wanted(table.lines, book, reason)
    changes, unchanged = _changes(session, book, wanted)
    told = sorted([*table.troubles, *troubles], key=lambda trouble: trouble.line)
    return Plan(changes, unchanged, tuple(told), table.passed_over, _digest(changes))


def apply(session: Session, member: Membership, rows: str, *, digest: str, now: datetime, above: bool = False) -> int:
    """Set the points of `Plan.rows`, if that still does what its digest names; how many were set.

    Args:
        above: it was confirmed that some are more than an assignment gives.

    Raises:
        InvalidInputError: these are no rows of a plan, or points are too many without `above`.
        ConflictError: one of the grades has changed since, or the rows are others; nothing was set.
    """
    member.require_staff()
    wanted = _parsed(rows)
    book = _book(session, member.course.id)
    lock_people(session, member.course.id, {one.user_id for one in wanted} & book.names.keys())
    changes, unchanged = _changes(session, book, [one for one in wanted if one.user_id in book.names])
    if len(changes) != len(wanted) or unchanged or _digest(changes) != digest:
        raise ConflictError("Some of these grades have changed since you looked. Nothing was saved: check them again.")
    for change in changes:
        one = change.wanted
        overrides.set_override(
            session, member, book.rows[one.assignment_id], one.user_id, points=one.points, reason=one.reason,
            revision=change.revision, now=now, above=above,
        )  # fmt: skip
    return len(changes)


@dataclass(frozen=True)
class _Book:
    """Who and what a table can name, and the grades as they are."""

    by_email: Mapping[str, int]
    by_number: Mapping[str, int]
    names: Mapping[int, str]
    by_slug: Mapping[str, Assignment]
    rows: Mapping[int, Assignment]


def _book(session: Session, course_id: int) -> _Book:
    students = session.execute(
        select(User.id, User.email, User.name, Enrolment.student_number)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(Enrolment.course_id == course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))
    ).all()
    rows = session.scalars(select(Assignment).where(Assignment.course_id == course_id)).all()
    return _Book(
        by_email={email: user_id for user_id, email, _, _ in students},
        by_number={number: user_id for user_id, _, _, number in students if number},
        names={user_id: name for user_id, _, name, _ in students},
        by_slug={row.slug: row for row in rows} | {row.title.casefold(): row for row in rows},
        rows={row.id: row for row in rows},
    )


def _all_wanted(lines: Sequence[Line], book: _Book, reason: str) -> tuple[list[Wanted], list[Trouble]]:
    wanted, troubles = [], []
    seen: dict[tuple[int, int], int] = {}
    for line in lines:
        try:
            one = _wanted(line, book, reason)
        except InvalidInputError as error:
            troubles.append(Trouble(line.number, error.message))
            continue
        first = seen.setdefault((one.user_id, one.assignment_id), line.number)
        if first == line.number:
            wanted.append(one)
        else:
            troubles.append(Trouble(line.number, f"Line {first} sets these points already."))
    return wanted, troubles


def _wanted(line: Line, book: _Book, reason: str) -> Wanted:
    row = book.by_slug.get(line.cells["assignment"]) or book.by_slug.get(line.cells["assignment"].casefold())
    if row is None:
        raise InvalidInputError(f"There is no assignment {line.cells['assignment'][:80]!r}.")
    reason = checked_reason(line.cells.get("reason", "") or reason)
    return Wanted(_student(line, book), row.id, _points(line.cells["points"]), reason)


def _student(line: Line, book: _Book) -> int:
    email, number = line.cells.get("email", "").lower(), line.cells.get("student number", "")
    found = {book.by_email.get(email)} if email else set()
    found |= {book.by_number.get(number)} if number else set()
    if not found:
        raise InvalidInputError("It names no student.")
    if None in found:
        raise InvalidInputError(f"There is no student {(email or number)[:80]!r} in this course.")
    if len(found) > 1:
        raise InvalidInputError("Its e-mail address and its student number belong to two different students.")
    return int(found.pop() or 0)


def _points(text: str) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        raise InvalidInputError(f"{text[:40]!r} is not a number of points.") from None
    overrides.check_points(points)
    return points


def _changes(session: Session, book: _Book, wanted: Sequence[Wanted]) -> tuple[tuple[Change, ...], int]:
    course_ids = {row.course_id for row in book.rows.values()}
    query = select(
        Grade.user_id, Grade.assignment_id, Grade.points, Grade.possible, Grade.revision, Grade.override_points
    ).where(Grade.course_id.in_(course_ids))
    grades = {(row[0], row[1]): row for row in session.execute(query)} if wanted else {}
    changes, unchanged = [], 0
    for one in wanted:
        found = grades.get((one.user_id, one.assignment_id))
        if found is None:
            continue
        _, _, old, possible, revision, override = found
        if override == one.points:
            unchanged += 1
            continue
        row = book.rows[one.assignment_id]
        published = row.grades_published_at is not None
        name = book.names[one.user_id]
        changes.append(Change(one, name, row.title, old, one.points > possible, revision, published))
    return tuple(changes), unchanged


def _digest(changes: Sequence[Change]) -> str:
    said = [
        [one.wanted.user_id, one.wanted.assignment_id, one.wanted.points, one.wanted.reason, one.old, one.revision]
        for one in changes
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _parsed(rows: str) -> list[Wanted]:
    try:
        found = [Wanted(int(user), int(row), float(points), str(why)) for user, row, points, why in json.loads(rows)]
    except (ValueError, TypeError, RecursionError):
        raise InvalidInputError(
            "These rows do not belong to an import; upload the table again.", field="rows"
        ) from None
    if len(found) > MOST_LINES:
        raise InvalidInputError(f"At most {MOST_LINES:,} grades can be set at once.", field="rows")
    return found
