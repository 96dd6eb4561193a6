"""The grades of a whole course: students by rungs, with one query for each kind of thing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session

from server import db
from server.courses.courses import AssignmentDetail, details_of
from server.models import Enrolment, Extension, Grade, Role, User

KEPT_CELLS = 16_384
"""So many texts of cells are kept in mind by whoever writes them: those of a large course, some megabytes."""


class Cell(NamedTuple):
    """One grade of the grid.

    Attributes:
        late_days: that it uses.
        penalty: points that lateness cost.
        handed_in: a submission counts.
    """

    points: float
    handed_in: bool
    late_days: int
    penalty: float
    overridden: bool
    extended: bool
    revision: int

    @property
    def is_empty(self) -> bool:
        """There is nothing that could give points."""
        return not (self.handed_in or self.points or self.overridden)


class Student(NamedTuple):
    """Who a row is about."""

    id: int
    name: str
    email: str
    section: str
    number: str


@dataclass(frozen=True)
class Row:
    """A student's grades, in the order of the grid's assignments; `None` where there is none."""

    student: Student
    cells: tuple[Cell | None, ...]
    total: float
    late_days: int


@dataclass(frozen=True)
class Grid:
    """A course's grades.

    Attributes:
        sections: all of the course, to choose from; `""` is none.
        students: how many there are, shown or not.
        possible: what all assignments can give, as they weigh.
    """

    details: Sequence[AssignmentDetail]
    rows: Sequence[Row]
    sections: tuple[str, ...]
    students: int
    possible: float


def grid(
    session: Session,
    course_id: int,
    *,
    q: str = "",
    section: str | None = None,
    sort: str = "name",
    user_id: int | None = None,
) -> Grid:
    """The grades of a course's students, without those who dropped it.

    Args:
        q: part of a name, e-mail address or student number.
        section: only of this one; `None`: all.
        sort: `name`, `section`, `total`, `late_days` or an assignment's slug; with `-` before it the other way round.
            Anything else is `name`.
        user_id: only this student; `None`: all.
    """
    details = details_of(session, course_id)
    students = _students(session, course_id, user_id)
    cells = _cells(session, course_id, user_id)
    columns = [(detail.row.id, detail.row.weight) for detail in details]
    wanted = (student for student in students if _is_wanted(student, q.strip().casefold(), section))
    rows = [_row(columns, student, cells.get(student.id, {})) for student in wanted]
    key = _sort_key(details, sort.removeprefix("-"))
    rows.sort(key=lambda row: (row.student.name.casefold(), row.student.id))
    rows.sort(key=key, reverse=sort.startswith("-"))
    sections = tuple(sorted({student.section for student in students}))
    possible = sum(detail.maximum_points * detail.row.weight for detail in details)
    return Grid(details, rows, sections, len(students), possible)


def _students(session: Session, course_id: int, user_id: int | None) -> list[Student]:
    query = (
        select(User.id, User.name, User.email, Enrolment.section, Enrolment.student_number)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(
            Enrolment.course_id == course_id,
            Enrolment.role == Role.student,
            Enrolment.dropped_at.is_(None),
            _is(Enrolment.user_id, user_id),
        )
    )
    return [Student(*row) for row in session.execute(query)]


def _cells(session: Session, course_id: int, user_id: int | None) -> Mapping[int, Mapping[int, Cell]]:
    """By student and assignment."""
    holding = select(Extension.user_id, Extension.assignment_id).where(
        Extension.course_id == course_id, Extension.withdrawn_at.is_(None), _is(Extension.user_id, user_id)
    )
    extended = {(user, rung) for user, rung in session.execute(holding)}
    query = select(
        Grade.user_id,
        Grade.assignment_id,
        Grade.points,
        Grade.submission_id,
        Grade.late_days,
        Grade.late_penalty,
        Grade.override_points,
        Grade.revision,
    ).where(Grade.course_id == course_id, _is(Grade.user_id, user_id))
    found: dict[int, dict[int, Cell]] = defaultdict(dict)
    for user, rung, points, counts, late_days, penalty, override, revision in db.plain_rows(session, query):
        found[user][rung] = Cell(
            points, counts is not None, late_days, penalty, override is not None, (user, rung) in extended, revision
        )
    return found


def _is(column: InstrumentedAttribute[int], user_id: int | None) -> ColumnElement[bool]:
    """Of one student where one is asked for, else of everybody."""
    return true() if user_id is None else column == user_id


def _is_wanted(student: Student, q: str, section: str | None) -> bool:
    if section is not None and student.section != section:
        return False
    return not q or any(q in text.casefold() for text in (student.name, student.email, student.number))


def _row(columns: Sequence[tuple[int, float]], student: Student, cells: Mapping[int, Cell]) -> Row:
    """A student's row; `columns` are the assignments' ids and weights."""
    own = tuple([cells.get(rung) for rung, _ in columns])
    total, late_days = 0.0, 0
    for cell, (_, weight) in zip(own, columns, strict=True):
        if cell is not None:
            total += cell.points * weight
            late_days += cell.late_days
    return Row(student, own, total, late_days)


def _sort_key(details: Sequence[AssignmentDetail], name: str) -> Callable[[Row], str | float]:
    columns = {detail.slug: index for index, detail in enumerate(details)}
    if name in columns:
        return lambda row: _points(row.cells[columns[name]])
    keys: dict[str, Callable[[Row], str | float]] = {
        "section": lambda row: row.student.section.casefold(),
        "total": lambda row: row.total,
        "late_days": lambda row: row.late_days,
    }
    return keys.get(name, lambda row: row.student.name.casefold())


def _points(cell: Cell | None) -> float:
    """Nothing stands below nought points."""
    return -math.inf if cell is None or cell.is_empty else cell.points
