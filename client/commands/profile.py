"""`ladder profile`: one call of a source under a GPU's counters, on the course's nodes or on this machine."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from autograder.contract import GradeRequest, Lane, Mode, Work
from client import harness, options, show, workspace
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
    if what and _RECEIPT.fullmatch(what) and not Path(what).exists():
        if local:
            raise UsageError("--local profiles a file; download the submission's source first.")
        _submission(what, case, _Wish(save, against, as_json))
    target = workspace.find_target(Path(what) if what else None, slug, language)
    if local and against:
        raise UsageError("--against needs the server: there are the profiles to compare with.")
    if local:
        _here(target, lane, case, as_json)
    with options.connect() as api:
        options.tell_of_other_server(api, target.server)
        course = options.choose_course(api, course_slug, target.course)
        assignment = api.assignment(course, target.slug)
        lanes = [one for one in assignment["lanes"] if one != Lane.cpu.value]
        chosen = lane or (lanes[0] if lanes else Lane.cpu.value)
        wanted = {
            "mode": Mode.profile.value, "lane": chosen, "language": target.language.value, "filename": target.file.name,
            "source": workspace.read_source(target.file), "case": case,
        }  # fmt: skip
        _sent(api.submit(course, target.slug, wanted)["public_id"], _Wish(save, against, as_json))


@dataclass(frozen=True)
class _Wish:
    """What is done with a profile: its files are saved, it is held against another, it is printed as JSON."""

    save: Path | None
    against: str
    as_json: bool


def _submission(public_id: str, case: str, wish: _Wish) -> None:
    """Profile what was handed in before, or show it where it is a profile already."""
    with options.connect() as api:
        found = api.submission(public_id)
        if found["mode"] != Mode.profile.value:
            wanted = {name: found[name] for name in ("lane", "language", "filename")}
            wanted |= {"mode": Mode.profile.value, "source": api.source(public_id), "case": case}
            public_id = api.submit(found["course"], found["assignment"], wanted)["public_id"]
    _sent(public_id, wish)


def _sent(public_id: str, wish: _Wish) -> None:
    """Follow a profile, show it, save its files, and exit."""
    with options.connect() as api:
        final = watch(api, api.submission(public_id), wish.as_json)
        found, save = final.get("profile"), wish.save
        if found and not wish.as_json:
            show.show_profile(show.console(), found)
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


def _here(target: workspace.Target, lane: str | None, case: str, as_json: bool) -> None:
    """Profile on this machine, and exit."""
    if lane in {None, Lane.cpu.value}:
        raise UsageError("say --lane with --local: the lane that this machine's GPU belongs to, such as h200.")
    folder = target.folder or Path("assignments", target.slug)
    request = GradeRequest(
        slug=target.slug, bundle="", language=target.language, lane=Lane(lane), mode=Mode.profile,
        source=workspace.read_source(target.file), filename=target.file.name, work=Work.profile, case=case,
    )  # fmt: skip
    result = watch_judge(harness.grade(request, folder, None), as_json)
    if result["profile"] and not as_json:
        show.show_profile(show.console(), result["profile"])
    sys.exit(options.status_of(result["verdict"]))
