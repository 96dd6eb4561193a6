"""`ladder admin settle-grades`: every grade as it is to be, whatever is stored."""

from __future__ import annotations

import click
from sqlalchemy import select

from server import stale
from server.console import work
from server.courses import service as courses
from server.gradebook import settling
from server.models import Course


@click.command("settle-grades")
@click.argument("course", required=False)
def settle_grades(course: str | None) -> None:
    """Work out every grade of COURSE anew, or of all courses, and say how many were not what they come to."""
    with work() as (session, _config):
        found = [courses.course_by_slug(session, course)] if course else session.scalars(select(Course)).all()
        for one in found:
            wrong = len(settling.differences(session, one.id))
            stale.grades(session, one.id)
            click.echo(f"{one.slug}: {wrong:,} {'grade' if wrong == 1 else 'grades'} put right.")
