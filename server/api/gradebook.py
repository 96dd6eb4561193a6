"""Grades: one's own, and for staff everybody's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from autograder.contract import Verdict
from server.api.responses import errors
from server.api.schemas import Read
from server.courses import courses
from server.errors import NotFoundError
from server.gradebook import queries as gradebook
from server.gradebook.exports import plain_csv
from server.gradebook.grid import KEPT_CELLS, Cell, Row, grid
from server.gradebook.queries import Line
from server.http.identity import Someone
from server.http.work import Work
from server.models import Role

router = APIRouter(tags=["grades"])
_PATH = "/courses/{course}"
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
"""As FastAPI's own answers are written."""


class GradeRead(Read):
    """What one assignment comes to, as its student may read it."""

    assignment: str
    title: str
    points: float
    possible: float
    final: Annotated[bool, Field(description="It is published, and nothing can be handed in any more.")]
    submission: Annotated[str | None, Field(description="Public id of the submission that counts.")]
    verdict: Annotated[Verdict | None, Field(description="Of the submission that counts.")]
    chosen: Annotated[bool, Field(description="The student chose it; otherwise it is the best.")]
    submission_points: Annotated[float, Field(description="Of that submission, before lateness.")]
    quiz_points: Annotated[float, Field(description="Before lateness.")]
    rubric_points: float
    days_late: int
    late_days: Annotated[int, Field(description="Late days that it uses.")]
    late_penalty: Annotated[float, Field(description="Points that lateness cost.")]
    override_points: Annotated[float | None, Field(description="What staff set, where they did.")]
    weight: float
    due_at: Annotated[datetime | None, Field(description="With one's own extension.")]
    late_until: datetime | None
    extended: bool

    @classmethod
    def of(cls, line: Line) -> GradeRead:
        """One line of a student's grades."""
        found, detail = line.outcome, line.detail
        return cls(
            assignment=detail.slug, title=detail.title, points=found.points, possible=found.possible,
            final=line.is_final, submission=line.submission.public_id if line.submission else None,
            verdict=line.submission.verdict if line.submission else None,
            chosen=found.chosen, submission_points=found.submission_points, quiz_points=found.quiz_points,
            rubric_points=found.rubric_points, days_late=found.days_late, late_days=found.late_days,
            late_penalty=found.late_penalty, override_points=found.override_points, weight=detail.row.weight,
            due_at=line.dates.due_at, late_until=line.dates.late_until, extended=line.dates.extended,
        )  # fmt: skip


class LateDaysRead(Read):
    """Late days of a student for the term."""

    budget: Annotated[int, Field(description="What every student has.")]
    granted: Annotated[int, Field(description="What staff gave besides, or took.")]
    used: int
    left: int
    most_each: Annotated[int | None, Field(description="That one assignment can use.")]
    penalty: Annotated[float, Field(description="Share of the points that each further day late costs.")]


class GradesRead(Read):
    """One's own grades in a course."""

    course: str
    points: Annotated[float, Field(description="As the assignments weigh.")]
    possible: float
    late_days: LateDaysRead
    grades: list[GradeRead]


class CellRead(Read):
    """One grade of the gradebook."""

    points: float
    late_days: int
    late_penalty: float
    overridden: bool
    extended: bool
    handed_in: bool
    revision: int


class StudentGradesRead(Read):
    """One line of the gradebook."""

    user: int
    name: str
    email: str
    student_number: str
    section: str
    total: float
    late_days: int
    grades: dict[str, CellRead]


class ColumnRead(Read):
    """An assignment of the gradebook."""

    assignment: str
    title: str
    possible: float
    weight: float
    published_at: datetime | None


class GradebookRead(Read):
    """Everybody's grades."""

    course: str
    possible: float
    assignments: list[ColumnRead]
    students: list[StudentGradesRead]


@router.get(f"{_PATH}/grades", responses=errors(401, 404), summary="My grades")
def read_grades(course: str, who: Someone, work: Work) -> GradesRead:
    """One's own grades and late days, for a student."""
    member = courses.membership(work, who.user, course)
    if member.role is not Role.student:
        raise NotFoundError("Only students have grades of their own; the gradebook shows everybody's.")
    found = gradebook.standing(work, member.course, member.user.id)
    late_days = LateDaysRead(
        budget=found.budget, granted=found.granted, used=found.used, left=found.left, most_each=found.most_each,
        penalty=found.penalty,
    )  # fmt: skip
    return GradesRead(
        course=course, points=found.points, possible=found.possible, late_days=late_days,
        grades=[GradeRead.of(line) for line in found.lines],
    )  # fmt: skip


@router.get(f"{_PATH}/gradebook", response_model=GradebookRead, responses=errors(401, 403, 404), summary="Gradebook")
def read_gradebook(course: str, who: Someone, work: Work) -> Response:
    """Everybody's grades, for staff."""
    member = courses.staff_of(work, who.user, course)
    found = grid(work, member.course.id)
    columns = [
        ColumnRead(
            assignment=detail.slug, title=detail.title, possible=detail.maximum_points, weight=detail.row.weight,
            published_at=detail.row.grades_published_at,
        )
        for detail in found.details
    ]  # fmt: skip
    head = GradebookRead(course=course, possible=found.possible, assignments=columns, students=[])
    return Response(_text(head, found.rows), media_type="application/json")


def _text(head: GradebookRead, rows: Sequence[Row]) -> str:
    """`head` with its students, as JSON.

    Nine thousand cells: as models they would be checked one by one, and as dicts written one by one. Either takes
    longer than all the rest. Their text is put together here instead; a test reads it back as `GradebookRead`.
    """
    slugs = [_JSON.encode(column.assignment) for column in head.assignments]
    begin = _JSON.encode(head.model_dump(mode="json")).removesuffix("]}")
    return f"{begin}{','.join([_line(row, slugs) for row in rows])}]}}"


def _line(row: Row, slugs: list[str]) -> str:
    """`StudentGradesRead` of a row; assignments without a grade are left out. `slugs` are JSON already."""
    student = row.student
    known = _JSON.encode({
        "user": student.id, "name": student.name, "email": student.email, "student_number": student.number,
        "section": student.section, "total": float(row.total), "late_days": row.late_days,
    })  # fmt: skip
    cells = [f"{slug}:{_cell(cell)}" for slug, cell in zip(slugs, row.cells, strict=True) if cell is not None]
    return f'{known.removesuffix("}")},"grades":{{{",".join(cells)}}}}}'


@lru_cache(maxsize=KEPT_CELLS)
def _cell(cell: Cell) -> str:
    """`CellRead` of it."""
    return _JSON.encode({
        "points": cell.points, "late_days": cell.late_days, "late_penalty": cell.penalty,
        "overridden": cell.overridden, "extended": cell.extended, "handed_in": cell.handed_in,
        "revision": cell.revision,
    })  # fmt: skip


@router.get(
    f"{_PATH}/gradebook.csv",
    responses={200: {"content": {"text/csv": {}}}, **errors(401, 403, 404)},
    response_class=Response,
    summary="Gradebook as CSV",
)
def read_gradebook_csv(course: str, who: Someone, work: Work) -> Response:
    """Everybody's grades as a table, for staff."""
    member = courses.staff_of(work, who.user, course)
    return Response(plain_csv(grid(work, member.course.id)), media_type="text/csv; charset=utf-8")
