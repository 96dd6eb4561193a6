"""`ladder admin similarity`: compare sources here and now, instead of in the dispatcher's own time."""

from __future__ import annotations

import click
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.accounts import accounts
from server.console import opened, read_config
from server.courses import courses
from server.db import now
from server.models import Comparison, SimilarPair
from server.similarity import similarity
from server.similarity.runner import begin, perform
from server.similarity.scope import Scope, Which


@click.command("similarity")
@click.argument("course")
@click.argument("slug")
@click.option("--by", required=True, help="E-mail address of the member of staff who asks.")
@click.option("--which", type=click.Choice(list(Which)), default=Which.latest, show_default=True)
@click.option("--with", "others", multiple=True, metavar="COURSE", help="Another course that has this assignment.")
@click.option("--public/--no-public", default=True, show_default=True, help="The folder of public solutions.")
@click.option("--staff/--no-staff", default=True, show_default=True, help="The staff's own solutions.")
def similarity_command(
    *, course: str, slug: str, by: str, which: str, others: tuple[str, ...], public: bool, staff: bool
) -> None:
    """Compare the submissions to SLUG in COURSE. It finds pairs to look at and decides nothing."""
    config = read_config()
    with opened(config) as database:
        with database.transaction() as session:
            ids = tuple(courses.course_by_slug(session, other).id for other in others)
            comparison_id = _begin(session, course, slug, by, Scope(Which(which), ids, public, staff))
        perform(database, config, comparison_id, _say)
        with database.reading() as session:
            row = session.get_one(Comparison, comparison_id)
            pairs = session.scalar(select(func.count()).where(SimilarPair.comparison_id == comparison_id))
            click.echo(f"{row.sources} sources compared, {len(row.left_out)} left out: {pairs} pairs to look at.")
            click.echo(f"{config.public_url}/courses/{course}/similarity/{comparison_id}")


def _begin(session: Session, course: str, slug: str, by: str, scope: Scope) -> int:
    member = courses.membership(session, accounts.user_by_email(session, by), course)
    at = now(session)
    row = similarity.start(session, member, courses.assignment_of(session, member, slug, at).row, scope, now=at)
    begin(row, at)
    return row.id


def _say(step: str, done: int, total: int) -> None:
    click.echo(f"{step}: {done} of {total}", err=True)


COMMANDS = (similarity_command,)
