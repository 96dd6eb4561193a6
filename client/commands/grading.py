"""`ladder check` and `ladder submit`: have a source graded, here or on the course's nodes, and watch."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from autograder.contract import GradeRequest, Lane, Mode
from client import harness, options, show, workspace
from client.api import Api, Json
from client.errors import NOT_PASSED, NotThereError, OursError, UsageError
from client.live import Live

_FILE = click.Path(dir_okay=False, path_type=Path)
KINDS = {mode.value: mode.noun.capitalize() for mode in Mode}
"""What was handed in, by its mode."""


@click.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--remote", is_flag=True, help="Run on the course's nodes; it does not affect your grade.")
@click.option("--slug", help="The assignment; default: guessed from the folder or the file name.")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="The assignment's files, for a local check."
)
@options.lane
@options.language
@options.course
@options.as_json
def check(
    *, file: Path | None, remote: bool, slug: str | None, folder: Path | None, lane: str | None, language: str | None,
    course_slug: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Test FILE on the public cases on this machine, with the nodes' judge. It does not affect your grade.

    Without FILE, it takes the file that `ladder get` put into this folder.
    """
    target = workspace.find_target(file, slug, language)
    if remote:
        hand_in(target, Mode.run, lane, course_slug, as_json)
    if lane not in {None, Lane.cpu.value}:
        raise UsageError(f"this machine can check on the cpu lane only; use --remote for the {lane} lane.")
    folder = folder or target.folder or Path("assignments", target.slug)
    request = GradeRequest(
        slug=target.slug, bundle="", language=target.language, lane=Lane.cpu, mode=Mode.run,
        source=workspace.read_source(target.file), filename=target.file.name,
    )  # fmt: skip
    result = watch_judge(harness.grade(request, folder, None), as_json)
    sys.exit(options.status_of(result["verdict"]))


@click.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--slug", help="The assignment; default: guessed from the folder or the file name.")
@options.lane
@options.language
@options.course
@options.as_json
def submit(
    *,
    file: Path | None,
    slug: str | None,
    lane: str | None,
    language: str | None,
    course_slug: str | None,
    as_json: bool,
) -> None:
    """Submit FILE and follow its grading.

    Without FILE, it takes the file that `ladder get` put into this folder.

    Exit status: 0 passed, 1 any other verdict or cancelled, 2 wrong usage, 3 the server's fault, 4 no connection or not
    logged in.
    Ctrl-C stops following it, not the grading.
    """
    hand_in(workspace.find_target(file, slug, language), Mode.submission, lane, course_slug, as_json)


@click.command()
@click.argument("submission")
@options.as_json
def cancel(submission: str, as_json: bool) -> None:
    """Cancel SUBMISSION, a receipt number, while it is in the queue. A grading that has begun is not stopped."""
    with options.connect() as api:
        stored = api.cancel(submission)
    if as_json:
        options.print_json(stored)
    else:
        click.echo(f"{KINDS[stored['mode']]} {stored['number']} of {stored['title']} is cancelled.")


def hand_in(target: workspace.Target, mode: Mode, lane: str | None, course: str | None, as_json: bool) -> None:
    """Send it, watch it, and exit by its verdict."""
    source = workspace.read_source(target.file)
    with options.connect() as api:
        options.tell_of_other_server(api, target.server)
        course = options.choose_course(api, course, target.course)
        assignment = _assignment(api, course, target)
        stored = api.submit(
            course,
            target.slug,
            {
                "mode": mode.value,
                "lane": options.choose_lane(assignment, lane),
                "language": target.language.value,
                "filename": target.file.name,
                "source": source,
            },
        )
        final = watch(api, stored, as_json)
    sys.exit(status_of_submission(final))


def _assignment(api: Api, course: str, target: workspace.Target) -> Json:
    """The target's assignment; where its name was guessed, that is said."""
    if not target.guessed:
        return api.assignment(course, target.slug)
    try:
        found = api.assignment(course, target.slug)
    except NotThereError:
        raise UsageError(
            f"there is no assignment {target.slug!r}, guessed from the name of {target.file.name}. "
            "Say --slug SLUG; `ladder list` shows them."
        ) from None
    click.echo(f"ladder: for {target.slug}, guessed from the file's name; --slug names another.", err=True)
    return found


def watch(api: Api, stored: Json, as_json: bool) -> Json:
    """Print what happens to a stored submission until it is final, which is returned."""
    out = show.console()
    live = Live(out)
    if not as_json:
        click.echo(f"{KINDS[stored['mode']]} {stored['number']} of {stored['title']}, receipt {stored['public_id']}")
    latest = stored
    try:
        for latest in api.follow(stored["public_id"]):
            if as_json:
                options.print_json(latest)
            else:
                live.submission(latest)
    except KeyboardInterrupt:
        again = f"`ladder status {stored['public_id']}`"
        raise UsageError(f"no longer following; grading goes on: {again}.") from None
    if not latest["is_final"]:
        latest = api.submission(stored["public_id"])
    if not as_json:
        show.show_result(out, latest)
        click.echo(f"{api.server}/submissions/{stored['public_id']}")
    return latest


def status_of_submission(submission: Json) -> int:
    """The exit status of a submission that is final."""
    if submission["state"] == "cancelled":
        return NOT_PASSED
    if submission["state"] != "done":
        return OursError.exit_code
    return options.status_of(submission["verdict"])


def watch_judge(events: Iterable[Json], as_json: bool) -> Json:
    """Print the judge's events as they come and its result at the end, which is returned."""
    out = show.console()
    live = Live(out)
    result: Json = None
    for event in events:
        result = event.get("result") or result
        if as_json:
            options.print_json(event)
        else:
            live.event(event)
    if not as_json:
        show.show_result(out, result)
    return result
