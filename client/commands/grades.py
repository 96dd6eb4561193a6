"""`ladder grades`: what everything comes to, and late days."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from client import options, show
from client.api import Json
from client.errors import clean


@click.command()
@options.course
@options.as_json
def grades(*, course_slug: str | None, as_json: bool) -> None:
    """Show your grades and remaining late days."""
    with options.connect() as api:
        standing = api.grades(options.choose_course(api, course_slug, options.course_here(api)))
    if as_json:
        options.print_json(standing)
    else:
        show_grades(show.console(), standing)


def show_grades(out: Console, standing: Json) -> None:
    """One line per assignment, then the sum and the late days."""
    table = Table(box=None, pad_edge=False)
    for column in ("assignment", "points", "of", "lateness", "grade"):
        table.add_column(column, justify="right" if column in {"points", "of"} else "left")
    for grade in standing["grades"]:
        cells = (
            grade["assignment"],
            f"{grade['points']:.2f}",
            f"{grade['possible']:g}",
            _lateness(grade),
            _said(grade),
        )
        table.add_row(*(Text(clean(cell)) for cell in cells))
    out.print(table)
    days = standing["late_days"]
    out.print(f"{standing['points']:.2f} of {standing['possible']:g} points; {days['left']} late days left.")


def _lateness(grade: Json) -> str:
    parts = []
    if grade["late_days"]:
        parts.append(f"{grade['late_days']} late {'day' if grade['late_days'] == 1 else 'days'}")
    if grade["late_penalty"] and grade["override_points"] is None:
        parts.append(f"-{grade['late_penalty']:.2f}")
    return ", ".join(parts)


def _said(grade: Json) -> str:
    by_staff = ", set by staff" if grade["override_points"] is not None else ""
    return f"{'final' if grade['final'] else 'not final'}{by_staff}"
