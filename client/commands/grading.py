"""`ladder check` and `ladder submit`: have a source graded, here or on the course's nodes, and watch."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from autograder.contract import GradeRequest, Lane, Mode
from client import harness, options, show, workspace
from client.api import Api, Json
from client.errors import NOT_PASSED, OursError, UsageError
from client.live import Live

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--remote", is_flag=True, help="A practice run on the course's nodes; counts for nothing.")
@click.option("--slug", help="The assignment; guessed from the folder or the file's name.")
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
    """Grade FILE on the public cases, on this machine: the same judge that the nodes run. It counts for nothing."""
    target = workspace.find_target(file, slug, language)
    if remote:
        hand_in(target, Mode.run, lane, course_slug, as_json)
    if lane not in {None, Lane.cpu.value}:
        raise UsageError(f"this machine checks on the lane cpu only; --remote finds a node for {lane}.")
    folder = folder or target.folder or Path("assignments", target.slug)
    request = GradeRequest(
        slug=target.slug, bundle="", language=target.language, lane=Lane.cpu, mode=Mode.run,
        source=workspace.read_source(target.file), filename=target.file.name,
    )  # fmt: skip
    result = watch_judge(harness.grade(request, folder, None), as_json)
    sys.exit(options.status_of(result["verdict"]))


@click.command()
@click.argument("file", required=False, type=_FILE)
@click.option("--slug", help="The assignment; guessed from the folder or the file's name.")
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
    """Submit FILE and watch it being graded.

    Exit status: 0 passed, 1 any other verdict or cancelled, 2 wrong usage, 3 our side failed, 4 no connection or not
    let in.
    Stopping to watch (Ctrl-C) does not stop the grading.
    """
    hand_in(workspace.find_target(file, slug, language), Mode.submission, lane, course_slug, as_json)


@click.command()
@click.argument("submission")
@options.as_json
def cancel(submission: str, as_json: bool) -> None:
    """Take SUBMISSION, a receipt number, out of the queue. What already runs is not stopped."""
    with options.connect() as api:
        stored = api.cancel(submission)
    if as_json:
        options.print_json(stored)
    else:
        kind = "Practice run" if stored["mode"] == "run" else "Submission"
        click.echo(f"{kind} {stored['number']} of {stored['title']} is cancelled.")


def hand_in(target: workspace.Target, mode: Mode, lane: str | None, course: str | None, as_json: bool) -> None:
    """Send it, watch it, and exit by its verdict."""
    source = workspace.read_source(target.file)
    with options.connect() as api:
        options.tell_of_other_server(api, target.server)
        course = options.choose_course(api, course, target.course)
        assignment = api.assignment(course, target.slug)
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


def watch(api: Api, stored: Json, as_json: bool) -> Json:
    """Print what happens to a stored submission until it is final, which is returned."""
    out = show.console()
    live = Live(out)
    if not as_json:
        kind = "Practice run" if stored["mode"] == "run" else "Submission"
        click.echo(f"{kind} {stored['number']} of {stored['title']}, receipt {stored['public_id']}")
    latest = stored
    try:
        for latest in api.follow(stored["public_id"]):
            if as_json:
                options.print_json(latest)
            else:
                live.submission(latest)
    except KeyboardInterrupt:
        again = f"`ladder status {stored['public_id']}`"
        raise UsageError(f"stopped watching; it is graded all the same: {again}.") from None
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
