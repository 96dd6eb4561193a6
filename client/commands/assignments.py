"""`ladder list`, `get` and `status`: look around, and fetch what one works on."""

from __future__ import annotations

import re
from pathlib import Path

import click

from autograder.assignment import EXTENSIONS
from autograder.contract import Language
from client import options, show, workspace
from client.api import Api, Json
from client.errors import NotThereError, UsageError, writing

_PUBLIC_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@click.command("list")
@options.course
@options.as_json
def list_assignments(course_slug: str | None, as_json: bool) -> None:
    """List the assignments of the course, by rung.

    Where the window is too narrow for all columns, the last ones are left out; --json has them all.
    """
    with options.connect() as api:
        course = options.choose_course(api, course_slug, options.course_here(api))
        assignments = api.assignments(course)
        grades = [] if as_json else _own_grades(api, course)
    if as_json:
        options.print_json(assignments)
    else:
        show.show_assignments(show.console(), assignments, grades)


def _own_grades(api: Api, course: str) -> list[Json]:
    try:
        return list(api.grades(course)["grades"])
    except NotThereError:
        return []  # Staff have none.


@click.command()
@click.argument("slug")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite your files with the server's.")
@options.language
@options.course
@options.as_json
def get(
    *, slug: str, folder: Path | None, force: bool, language: str | None, course_slug: str | None, as_json: bool
) -> None:
    """Fetch the handout and the starter of SLUG into DIR (default: a folder named SLUG)."""
    folder = folder or Path(slug)
    with options.connect() as api:
        course = options.choose_course(api, course_slug, options.course_here(api))
        assignment = api.assignment(course, slug)
        archive = api.archive(course, slug)
        server = api.server
    chosen = _choose_language(assignment, language)
    note = workspace.Note(server, course, slug, chosen, f"{slug}.{EXTENSIONS[chosen]}")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        workspace.unpack(archive, slug, folder, renew=force or workspace.is_rung(folder, slug))
        outcome = workspace.place_starter(folder, note, assignment["starters"][chosen], force=force)
        workspace.write_note(folder, note)
    _tell_got(folder, note, outcome, as_json)


def _choose_language(assignment: Json, wish: str | None) -> Language:
    offered = [name for name in assignment["languages"] if name in assignment["starters"]]
    if wish and wish not in offered:
        raise UsageError(f"{assignment['slug']} has a starter in {', '.join(offered)}, not in {wish!r}.")
    return Language(wish or offered[0])


def _tell_got(folder: Path, note: workspace.Note, outcome: str, as_json: bool) -> None:
    path = folder / note.file
    if as_json:
        options.print_json({"folder": str(folder), "file": str(path), "starter": outcome})
        return
    told = {
        "written": f"Your file: {path}",
        "unchanged": f"Your file: {path} (still the starter)",
        "kept": f"Kept your {path}; --force replaces it with the starter",
        "replaced": f"Replaced {path} with the starter",
    }
    click.echo(f"Handout: {folder / 'README.md'}\n{told[outcome]}")


@click.command()
@click.argument("what", metavar="[ID|SLUG]", required=False)
@options.course
@options.as_json
def status(what: str | None, course_slug: str | None, as_json: bool) -> None:
    """Show one submission (by its ID), or the history of an assignment or of the whole course."""
    with options.connect() as api:
        if what and _PUBLIC_ID.fullmatch(what):
            _show_one(api.submission(what), as_json)
            return
        history = _history(api, what, options.choose_course(api, course_slug, options.course_here(api)))
    if as_json:
        options.print_json(history)
    elif history:
        show.show_history(show.console(), history)
    else:
        click.echo("No submissions yet.")


def _show_one(submission: Json, as_json: bool) -> None:
    if as_json:
        options.print_json(submission)
        return
    click.echo(f"{submission['title']}, {submission['mode']} {submission['number']}: {submission['state']}")
    show.show_result(show.console(), submission)


def _history(api: Api, slug: str | None, course: str) -> list[Json]:
    if slug:
        api.assignment(course, slug)  # an unknown slug is an error, not an empty history
    return api.submissions(course, slug)
