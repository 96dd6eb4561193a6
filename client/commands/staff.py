"""What staff type: `ladder admin …`, `ladder assignments verify`, and the processes of an installation.

Server, worker and harness are other extras: they are loaded here, by name, when a command needs them.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import click

from autograder import assignment as rungs
from autograder import codec
from autograder.contract import GradeRequest, Lane, Mode, Work
from autograder.errors import HarnessError
from client import harness, options, workspace
from client.commands.grading import watch_judge
from client.errors import UsageError, clean

_FOLDER = click.Path(file_okay=False, path_type=Path)
_assignments = click.option(
    "--assignments", type=_FOLDER, default=Path("assignments"), show_default=True, envvar="LADDER_ASSIGNMENTS"
)
_reference = click.option(
    "--reference", type=_FOLDER, default=Path("reference"), show_default=True, envvar="LADDER_REFERENCE"
)


def load(name: str, extra: str) -> Any:
    """Import a module of another extra.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == name.split(".", maxsplit=1)[0]:
            raise
        raise UsageError(
            f"this needs the {extra!r} extra ({error.name} is missing): pip install 'kernel-ladder[{extra}]'"
        ) from None


class AdminGroup(click.Group):
    """The server's own commands, and `grade-file`, which needs no server."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those of the server only where it is installed."""
        try:
            return sorted({*super().list_commands(ctx), *_server_group().list_commands(ctx)})
        except UsageError:
            return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Ours first."""
        return super().get_command(ctx, cmd_name) or _server_group().get_command(ctx, cmd_name)


def _server_group() -> click.Group:
    return cast("click.Group", load("server.cli", "server").admin)


@click.group(cls=AdminGroup)
def admin() -> None:
    """Accounts, courses and nodes of the installation on this machine; needs its configuration."""


@admin.command("grade-file")
@click.argument("slug")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--assignments", type=_FOLDER, default=Path("assignments"), show_default=True, envvar="LADDER_ASSIGNMENTS"
)
@_reference
@options.language
@click.option("--lane", type=click.Choice(list(Lane)), default=Lane.cpu, show_default=True)
@click.option("--work", type=click.Choice(list(Work)), default=Work.all, show_default=True, help="Grading stage.")
@options.as_json
def grade_file(
    *, slug: str, file: Path, assignments: Path, reference: Path, language: str | None, lane: str, work: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Grade FILE as a submission to SLUG on this machine, without a server, hidden cases and findings included."""
    if not (reference / slug).is_dir():
        raise UsageError(f"{reference / slug} is missing; pass the staff's folder as --reference.")
    target = workspace.find_target(file, slug, language)
    request = GradeRequest(
        slug=slug, bundle="", language=target.language, lane=Lane(lane), mode=Mode.submission,
        source=workspace.read_source(file), filename=file.name, work=Work(work),
    )  # fmt: skip
    result = watch_judge(harness.grade(request, assignments / slug, reference / slug), as_json)
    sys.exit(options.status_of(result["verdict"]))


def process(name: str, module: str, extra: str, text: str) -> click.Command:
    """A command that runs `main()` of a module of another extra; what stands after it is that module's to read."""

    def run(arguments: tuple[str, ...]) -> None:
        main: Callable[[], int | None] = load(module, extra).main
        sys.argv = [f"ladder {name}", *arguments]
        sys.exit(main() or 0)

    return click.Command(
        name,
        callback=run,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        help=text,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )


dispatcher = process(
    "dispatcher", "server.dispatcher", "server", "Send queued submissions to nodes, and requeue lost attempts."
)
recorder = process("recorder", "server.recorder", "server", "Write the nodes' results to the database.")
worker = process("worker", "worker.main", "worker", "Grade on this machine, as a node.")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, envvar="LADDER_PORT")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of processes that share the port.",
)
def web(host: str, port: int, workers: int) -> None:
    """Serve pages and API."""
    load("server.web", "server").serve(host, port, workers)


@click.group("assignments")
def assignments_group() -> None:
    """Tools for authors of assignments."""


@assignments_group.command("new")
@click.argument("slug")
@click.option("--rung", type=click.IntRange(0), help="Its number on the ladder; default: after the last rung.")
@click.option("--title", help="Title for people; default: made from the slug.")
@click.option(
    "--assignments", type=_FOLDER, default=Path("assignments"), show_default=True, envvar="LADDER_ASSIGNMENTS"
)
@_reference
def new_rung(*, slug: str, rung: int | None, title: str | None, assignments: Path, reference: Path) -> None:
    """Start a rung: two folders with a small working exercise to edit."""
    harness.require_harness()
    title = title or slug.replace("_", " ").capitalize()
    try:
        scaffold = load("autograder.verify.scaffold", "harness")
        rung = scaffold.next_rung(assignments) if rung is None else rung
        written = scaffold.write(assignments, reference, slug=slug, title=title, rung=rung)
    except HarnessError as error:
        raise UsageError(str(error)) from None
    for path in written:
        click.echo(path)
    standard = (assignments, reference) == (Path("assignments"), Path("reference"))
    where = "" if standard else f" --assignments {assignments} --reference {reference}"
    click.echo(f"Next: ladder assignments verify{where} {slug}, and docs/authoring.md.")


@assignments_group.command()
@click.argument("slugs", nargs=-1)
@click.option(
    "--assignments", type=_FOLDER, default=Path("assignments"), show_default=True, envvar="LADDER_ASSIGNMENTS"
)
@_reference
@options.as_json
def verify(*, slugs: tuple[str, ...], assignments: Path, reference: Path, as_json: bool) -> None:
    """Check that rungs are complete and tell right from wrong; without SLUGS, all rungs.

    Grades the staff kernel, the starter, the milestones, every mutant and every submission in its folders, and says
    what is missing. Exit status: 0 if all is as it should be, 1 otherwise.
    """
    harness.require_harness()
    complete = True
    sandbox = load("autograder.sandbox.process", "harness").ProcessSandbox()
    try:
        for slug in slugs or rungs.slugs(assignments):
            complete &= _verify_one(assignments / slug, reference / slug, sandbox, as_json)
    except HarnessError as error:
        raise UsageError(str(error)) from None
    finally:
        sandbox.close()
    sys.exit(0 if complete else 1)


def _verify_one(assignment: Path, reference: Path, sandbox: Any, as_json: bool) -> bool:
    verifier = load("autograder.verify", "harness")
    tell = (lambda _: None) if as_json else _tell_outcome
    if not as_json:
        click.echo(f"── {assignment.name}")
    report = verifier.verify(assignment, reference, sandbox=sandbox, emit=tell)
    if as_json:
        options.print_json({**codec.to_json(report), "complete": report.complete})
        return bool(report.complete)
    for gap in report.gaps:
        click.echo(f"  missing   {gap.where}: {gap.problem}")
    click.echo(f"  {_tally(report.outcomes)}")
    kernels = len(report.outcomes)
    click.echo(f"  {kernels} kernels in {report.seconds:.0f} s: {'complete' if report.complete else 'NOT COMPLETE'}")
    return bool(report.complete)


def _tally(outcomes: Sequence[Any]) -> str:
    """How many of each kind went as planned, and which cases killed how many mutants."""
    kinds = dict.fromkeys(outcome.trial.kind.value for outcome in outcomes)
    counts = [
        f"{kind} {sum(one.as_planned for one in mine)}/{len(mine)}"
        for kind in kinds
        if (mine := [outcome for outcome in outcomes if outcome.trial.kind.value == kind])
    ]
    killers = Counter(outcome.trial.killed_by for outcome in outcomes if outcome.trial.killed_by and outcome.as_planned)
    killed = ", ".join(f"{clean(case)} ({count})" for case, count in killers.most_common())
    return f"{', '.join(counts)}; mutants killed by {killed or 'none'}"


def _tell_outcome(outcome: Any) -> None:
    kind, name = outcome.trial.kind.value, clean(outcome.trial.name)
    first = f", first at {clean(outcome.failed[0])}" if outcome.failed else ""
    killer = outcome.trial.killed_by if outcome.as_planned else ""
    killed = f", killed by {clean(killer)}" if killer and killer != outcome.failed[0] else ""
    planned = "as planned" if outcome.as_planned else "NOT AS PLANNED"
    click.echo(f"  {planned}  {kind:10}  {outcome.verdict:14}  {name}{first}{killed}  ({outcome.seconds:.1f} s)")
    if outcome.deviation:
        click.echo(f"      {clean(outcome.deviation)}")
