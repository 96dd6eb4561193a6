"""Grades as tables for other programs. No cell of them is taken for a formula (`server.csv_io`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from server import csv_io
from server.courses.courses import AssignmentDetail
from server.gradebook.grid import Cell, Grid, Row

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
"""What Canvas knows a row by; it fills `ID` itself and finds a student by one of the two after it."""
PLAIN = ("name", "email", "student number", "section")
_DIGITS = 2


def plain_csv(found: Grid) -> str:
    """A line per student, a column per assignment's slug, what it comes to as they weigh, and late days used."""
    header = [*PLAIN, *(detail.slug for detail in found.details), "total", "late days"]
    return csv_io.write(header, [_plain(row) for row in found.rows])


def canvas_csv(found: Grid) -> str:
    """As Canvas's gradebook takes it in: who has nothing yet has an empty cell, which Canvas leaves as it is."""
    possible = ["    Points Possible", *("" for _ in CANVAS[1:]), *(detail.maximum_points for detail in found.details)]
    return csv_io.write([*CANVAS, *_titles(found.details)], [possible, *(_canvas(row) for row in found.rows)])


def _plain(row: Row) -> list[object]:
    student = row.student
    known = [student.name, student.email, student.number, student.section]
    return [*known, *(_points(cell) for cell in row.cells), round(row.total, _DIGITS), row.late_days]


def _canvas(row: Row) -> list[object]:
    student = row.student
    return [student.name, "", student.number, student.email, student.section, *(_points(cell) for cell in row.cells)]


def _points(cell: Cell | None) -> float | None:
    return None if cell is None or cell.is_empty else round(cell.points, _DIGITS)


def _titles(details: Sequence[AssignmentDetail]) -> list[str]:
    """Titles; with the slug where two assignments share one, which Canvas would take for one column."""
    often = Counter(detail.title for detail in details)
    return [detail.title if often[detail.title] == 1 else f"{detail.title} {detail.slug}" for detail in details]
