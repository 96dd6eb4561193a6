"""`ladder board`, `milestones` and `standings`: see who is fast."""

from __future__ import annotations

import click

from client import boards, options, show


@click.command()
@click.argument("slug")
@click.option("--language", metavar="LANGUAGE", help="Only results in this language, ranked among themselves.")
@click.option("--section", help="Only students of this section: your own, or any if you are staff.")
@click.option("--source", "of", metavar="NAME", help="Instead: the note and the source that NAME shared on it.")
@options.lane
@options.course
@options.as_json
def board(
    *,
    slug: str,
    lane: str | None,
    language: str | None,
    section: str | None,
    of: str | None,
    course_slug: str | None,
    as_json: bool,
) -> None:
    """Show the leaderboard of SLUG."""
    with options.connect() as api:
        course = options.choose_course(api, course_slug, options.course_here(api))
        ranking = api.leaderboard(course, slug, lane, language=language, section=section)
        shared = [api.shared_entry(course, slug, each) for each in boards.shared_by(ranking, of)] if of else []
    if of and as_json:
        options.print_json(shared)
    elif of:
        boards.show_shared(show.console(), shared)
    elif as_json:
        options.print_json(ranking)
    else:
        boards.show_board(show.console(), ranking)


@click.command()
@click.argument("slug")
@options.course
@options.as_json
def milestones(*, slug: str, course_slug: str | None, as_json: bool) -> None:
    """Show the milestones of SLUG: what each does, and which you can read.

    `ladder get SLUG` fetches the sources of those that are open to you.
    """
    with options.connect() as api:
        course = options.choose_course(api, course_slug, options.course_here(api))
        found = api.milestones(course, slug)
    if as_json:
        options.print_json(found)
    else:
        boards.show_milestones(show.console(), slug, found)


@click.command()
@options.lane
@options.course
@options.as_json
def standings(*, lane: str | None, course_slug: str | None, as_json: bool) -> None:
    """Show the standings over all leaderboards of the course."""
    with options.connect() as api:
        found = api.standings(options.choose_course(api, course_slug, options.course_here(api)), lane)
    if as_json:
        options.print_json(found)
    else:
        boards.show_standings(show.console(), found)
