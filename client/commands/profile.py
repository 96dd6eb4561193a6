"""`ladder profile`: one call of a source under a GPU's counters, on the course's nodes or on this machine."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

from autograder.contract import GradeRequest, Lane, Mode, Work
from client import harness, options, show, workspace
from client.api import Api, Json
from client.commands.grading import KINDS, status_of_submission, watch, watch_judge
from client.errors import UsageError

_RECEIPT = re.compile(r"[0-9A-Z]{26}")


@click.command()
@click.argument("what", metavar="[FILE|SUBMISSION]", required=False)
@click.option("--case", default="", help="A public case; default: the ranked one with the most work.")
@click.option("--local", is_flag=True, help="On this machine's GPU, with the nodes' judge; needs ncu.")
@click.option(
    "--save", type=click.Path(file_okay=False, path_type=Path), help="Folder for the report and the timeline."
)
@click.option(
    "--against",
    default="",
    metavar="WHAT",
    help="last, best, or a milestone's file; default: what has a profile.",
)
@click.option("--slug", help="The assignment; default: guessed from the folder or the file name.")
@options.lane
@options.language
@options.course
@options.as_json
def profile(
    *, what: str | None, case: str, local: bool, save: Path | None, against: str, slug: str | None, lane: str | None,
    language: str | None, course_slug: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Profile one call of FILE, or of what was handed in as SUBMISSION (its receipt number).

    It does not affect your grade, and waits until nobody waits for a grade.

    Without either, it takes the file that `ladder get` put into this folder.
    """
    if local and against:
        raise UsageError("--against needs the server: there are the profiles to compare with.")
    wanted = Wanted(Mode.profile, what, slug, lane, language, course_slug, case)
    if local:
        here(wanted, as_json, _show)
    with options.connect() as api:
        _sent(api, handed_in(api, wanted), _Wish(save, against, as_json))


@dataclass(frozen=True)
class Wanted:
    """One call to be looked at with a tool.

    Attributes:
        what: a file, or a receipt number; `None` for the file of this folder.
        case: as of a submission.
    """

    mode: Mode
    what: str | None
    slug: str | None
    lane: str | None
    language: str | None
    course: str | None
    case: str

    @property
    def submission(self) -> str:
        """The receipt number; `""` where it is a file."""
        named = self.what or ""
        return named if _RECEIPT.fullmatch(named) and not Path(named).exists() else ""

    @property
    def target(self) -> workspace.Target:
        """The file and its assignment."""
        return workspace.find_target(Path(self.what) if self.what else None, self.slug, self.language)


def handed_in(api: Api, wanted: Wanted) -> str:
    """Hand it in, unless it is such a run already; its ID."""
    if wanted.submission:
        found = api.submission(wanted.submission)
        if found["mode"] == wanted.mode.value:
            return wanted.submission
        again = {name: found[name] for name in ("lane", "language", "filename")}
        again |= {"mode": wanted.mode.value, "source": api.source(wanted.submission), "case": wanted.case}
        return str(api.submit(found["course"], found["assignment"], again)["public_id"])
    target = wanted.target
    options.tell_of_other_server(api, target.server)
    course = options.choose_course(api, wanted.course, target.course)
    lanes = [one for one in api.assignment(course, target.slug)["lanes"] if one != Lane.cpu.value]
    new = {
        "mode": wanted.mode.value, "lane": wanted.lane or (lanes[0] if lanes else Lane.cpu.value),
        "language": target.language.value, "filename": target.file.name,
        "source": workspace.read_source(target.file), "case": wanted.case,
    }  # fmt: skip
    return str(api.submit(course, target.slug, new)["public_id"])


def here(wanted: Wanted, as_json: bool, shown: Callable[[Json], None]) -> NoReturn:
    """Look at a file's call on this machine, show the result, and exit."""
    if wanted.submission:
        raise UsageError("--local takes a file; download the submission's source first.")
    if wanted.lane in {None, Lane.cpu.value}:
        raise UsageError("say --lane with --local: the lane that this machine's GPU belongs to, such as h200.")
    target = wanted.target
    folder = target.folder or Path("assignments", target.slug)
    request = GradeRequest(
        slug=target.slug, bundle="", language=target.language, lane=Lane(wanted.lane), mode=wanted.mode,
        source=workspace.read_source(target.file), filename=target.file.name, work=Work(wanted.mode.value),
        case=wanted.case,
    )  # fmt: skip
    result = watch_judge(harness.grade(request, folder, None), as_json)
    if not as_json:
        shown(result)
    sys.exit(options.status_of(result["verdict"]))


@dataclass(frozen=True)
class _Wish:
    """What is done with a profile: its files are saved, it is held against another, it is printed as JSON."""

    save: Path | None
    against: str
    as_json: bool


def _show(result: Json) -> None:
    if result.get("profile"):
        show.show_profile(show.console(), result["profile"])


def _sent(api: Api, public_id: str, wish: _Wish) -> NoReturn:
    """Follow a profile, show it, save its files, and exit."""
    final = watch(api, api.submission(public_id), wish.as_json)
    found, save = final.get("profile"), wish.save
    if found and not wish.as_json:
        _show(final)
        show.show_changes(show.console(), api.changes(public_id, wish.against))
        click.echo(f"{api.server}/submissions/{public_id}/profile")
    if found and save is not None:
        save.mkdir(parents=True, exist_ok=True)
        name = f"{final['assignment']}-profile-{final['number']}"
        (save / f"{name}-trace.json").write_text(json.dumps(api.trace(public_id)), encoding="utf-8")
        if found["report_bytes"]:
            (save / f"{name}.ncu-rep").write_bytes(api.report(public_id))
        click.echo(f"{KINDS['profile']} {final['number']} is saved in {save}.", err=True)
    sys.exit(status_of_submission(final))
