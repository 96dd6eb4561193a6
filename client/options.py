"""Options that several commands share, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from client import workspace
from client.account import address_of, load_account
from client.api import Api, Json
from client.errors import NOT_PASSED, OURS, PASSED, UsageError, clean

F = TypeVar("F", bound=Callable[..., Any])


def as_json(command: F) -> F:
    """`--json`: one JSON document, or one JSON document a line for what goes on for a while."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def course(command: F) -> F:
    """`--course`: needed only by who is in several."""
    text = "The course's short name; needed only if you are in several."
    return click.option("--course", "course_slug", envvar="LADDER_COURSE", metavar="COURSE", help=text)(command)


def lane(command: F) -> F:
    """`--lane`: where it is graded."""
    return click.option("--lane", metavar="LANE", help="The device class, such as cpu or h200.")(command)


def language(command: F) -> F:
    """`--language`: guessed from the file where it is not said."""
    return click.option("--language", metavar="LANGUAGE", help="Default: guessed from the file.")(command)


def connect() -> Api:
    """The server that the user is logged in to."""
    return Api(load_account())


def choose_course(api: Api, *wishes: str | None) -> str:
    """The first course that was wished for, else the only one there is."""
    for wish in wishes:
        if wish:
            return wish
    slugs = [str(item["slug"]) for item in api.courses()]
    if len(slugs) == 1:
        return slugs[0]
    if not slugs:
        raise UsageError("you are not in a course yet; ask its staff to enrol you.")
    raise UsageError(f"you are in several courses; pass --course {'|'.join(slugs)}.")


def course_here(api: Api) -> str | None:
    """The course of the rung's folder that this runs in; a folder of another server is said to be one."""
    found = workspace.find_note(Path.cwd())
    if found is None:
        return None
    tell_of_other_server(api, found[1].server)
    return found[1].course


def tell_of_other_server(api: Api, server: str) -> None:
    """Warn where a folder was made for another server than the one that is asked.

    The folder may be anybody's, such as a repository that was cloned, so it never decides where a token or a source
    goes; and who sits in it may believe that it did.
    """
    if not server or address_of(server).lower() == api.server.lower():
        return
    named = " ".join(clean(server).split())
    click.echo(f"ladder: this folder comes from {named}, but {api.server} is used, where you are logged in.", err=True)


def choose_lane(assignment: Json, wish: str | None) -> str:
    """The lane wished for, else the first that grades the assignment."""
    lanes = [str(lane) for lane in assignment["lanes"]]
    if wish and wish not in lanes:
        raise UsageError(f"{assignment['slug']} is not graded on {wish!r}, only on {', '.join(lanes)}.")
    return wish or lanes[0]


def print_json(value: Json) -> None:
    """One JSON document on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def status_of(verdict: str | None) -> int:
    """The exit status that a verdict gives; none at all is ours."""
    if verdict in {None, "grader_error"}:
        return OURS
    return PASSED if verdict == "passed" else NOT_PASSED
