"""`ladder sanitize`: one call of a source under Compute Sanitizer, on the course's nodes or on this machine."""

from __future__ import annotations

import sys

import click

from autograder.contract import Mode
from client import options, show
from client.api import Json
from client.commands.grading import status_of_submission, watch
from client.commands.profile import Wanted, handed_in, here


@click.command()
@click.argument("what", metavar="[FILE|SUBMISSION]", required=False)
@click.option("--case", default="", help="A public case; default: a small one.")
@click.option("--local", is_flag=True, help="On this machine's GPU, with the nodes' judge; needs compute-sanitizer.")
@click.option("--slug", help="The assignment; default: guessed from the folder or the file name.")
@options.lane
@options.language
@options.course
@options.as_json
def sanitize(
    *, what: str | None, case: str, local: bool, slug: str | None, lane: str | None, language: str | None,
    course_slug: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Look for wrong accesses, races and barriers in one call of FILE, or of SUBMISSION (its receipt number).

    It does not affect your grade, and waits until nobody waits for a grade.

    Without either, it takes the file that `ladder get` put into this folder.
    """
    wanted = Wanted(Mode.sanitize, what, slug, lane, language, course_slug, case)
    if local:
        here(wanted, as_json, _show)
    with options.connect() as api:
        final = watch(api, api.submission(handed_in(api, wanted)), as_json)
    if not as_json:
        _show(final)
    sys.exit(status_of_submission(final))


def _show(result: Json) -> None:
    if result.get("sanitized"):
        show.show_sanitized(show.console(), result["sanitized"])
