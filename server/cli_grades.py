"""`ladder admin recompute-grades`: every grade, and every place on a board, as it is to be, whatever is stored."""

from __future__ import annotations

import click
from sqlalchemy import select

from server import dirty_grades
from server.console import work
from server.courses import courses
from server.gradebook import recompute
from server.grading import leaderboard_entries
from server.models import Course


@click.command("recompute-grades")
@click.argument("course", required=False)
def settle_grades(course: str | None) -> None:
    """Compute every grade of COURSE, or of all courses, again and print how many were wrong.

    The same for its leaderboards.
    """
    with work() as (session, _config):
        found = [courses.course_by_slug(session, course)] if course else session.scalars(select(Course)).all()
        for one in found:
            wrong = len(recompute.differences(session, one.id))
            dirty_grades.grades(session, one.id)
            places = leaderboard_entries.renew(session, one.id)
            more = f" {places:,} {'place' if places == 1 else 'places'} on boards, too." if places else ""
            click.echo(f"{one.slug}: {wrong:,} {'grade' if wrong == 1 else 'grades'} corrected.{more}")
