"""`ladder admin settle-grades`: every grade, and every place on a board, as it is to be, whatever is stored."""

from __future__ import annotations

import click
from sqlalchemy import select

from server import stale
from server.console import work
from server.courses import service as courses
from server.gradebook import settling
from server.grading import bests
from server.models import Course


@click.command("settle-grades")
@click.argument("course", required=False)
def settle_grades(course: str | None) -> None:
    """Work out every grade of COURSE anew, or of all courses, and say how many were not what they come to.

    So is what stands on its leaderboards.
    """
    with work() as (session, _config):
        found = [courses.course_by_slug(session, course)] if course else session.scalars(select(Course)).all()
        for one in found:
            wrong = len(settling.differences(session, one.id))
            stale.grades(session, one.id)
            places = bests.renew(session, one.id)
            more = f" {places:,} {'place' if places == 1 else 'places'} on boards, too." if places else ""
            click.echo(f"{one.slug}: {wrong:,} {'grade' if wrong == 1 else 'grades'} put right.{more}")
