"""`ladder node accept` and `verify-report`: what a new GPU can do, tried and signed before any grade depends on it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from autograder.assignment import slugs
from autograder.contract import Language
from autograder.errors import HarnessError
from autograder.signing import SignatureError, SigningKey, key_id, verify
from client import node_report
from client.commands.staff import load
from client.errors import NOT_PASSED, PASSED, UsageError, clean, writing

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)
MAX_REPORT_BYTES = 64 * 2**20


@click.command()
@click.option("--lane", default="auto", show_default=True, help="The lane to grade; `auto`: the lane of its GPU.")
@click.option("--gpu", default="", help="UUID of the GPU, or how it begins; needed if there are several.")
@click.option("--sandbox", type=click.Choice(["process", "docker"]), default="process", show_default=True)
@click.option(
    "--accept-missing", "accepted", multiple=True, metavar="PROMISE", help="Accept that this guarantee is missing."
)
@click.option(
    "--rung", "wanted", multiple=True, metavar="SLUG", help="Only this rung's reference kernel; may be repeated."
)
@click.option(
    "--language",
    "languages",
    type=click.Choice(list(Language)),
    multiple=True,
    help="Only this language; may be repeated. Default: all.",
)
@click.option(
    "--gradings", type=click.IntRange(1, 200), default=20, show_default=True, help="Measurements of the golden kernel."
)
@click.option(
    "--part",
    "parts",
    type=click.Choice(["self_test", "noise", "rungs"]),
    multiple=True,
    help="Only this part; may be repeated. Default: all.",
)
@click.option("--red-team", type=click.Choice(["quick", "full", "none"]), default="quick", show_default=True)
@click.option("--out", type=_FOLDER, default=Path(), show_default=True, help="Folder for the report.")
@click.option("--key", type=_FILE, help="Ed25519 key to sign with, made if missing; default: a new key.")
@click.option(
    "--assignments", type=_FOLDER, default=Path("assignments"), show_default=True, envvar="LADDER_ASSIGNMENTS"
)
@click.option("--reference", type=_FOLDER, default=Path("reference"), show_default=True, envvar="LADDER_REFERENCE")
def accept(
    *, wanted: tuple[str, ...], languages: tuple[Language, ...], gradings: int, parts: tuple[str, ...], red_team: str,
    out: Path, key: Path | None, assignments: Path, reference: Path, **how: Any,
) -> None:  # fmt: skip
    """Test everything that grading on this machine depends on, and write a signed report.

    It needs no server: sandbox and escapes, noise floor, clocks, every rung's staff kernel, the red team. Exit status 0
    if nothing is wrong.
    """
    chosen = _rungs(assignments, wanted)
    signer = _key(key)
    with _node_config(**how) as config:
        accepting = load("worker.accept", "worker")
        plan = accepting.Plan(
            assignments.resolve(),
            reference.resolve(),
            chosen,
            languages or tuple(Language),
            gradings,
            red_team,
            parts or accepting.PARTS,
        )
        try:
            report = accepting.run(config, plan, lambda text: click.echo(text, err=True))
        except (HarnessError, load("worker.node_errors", "worker").WorkerError) as error:
            raise UsageError(str(error)) from None
    report = signer.sign(report)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / "node-report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        (out / "node-report.md").write_text(node_report.page(report), encoding="utf-8")
    click.echo(node_report.page(report))
    click.echo(f"Wrote {out / 'node-report.json'} and {out / 'node-report.md'}; key {key_id(signer.public)}.")
    sys.exit(PASSED if report["accepted"] else NOT_PASSED)


@click.command("verify-report")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", "public", help="The public key that must have signed it, in base64.")
def verify_report(*, file: Path, public: str | None) -> None:
    """Verify a report that `ladder node accept` signed. Exit status: 0 if it is genuine and the node was accepted."""
    report = _read(file)
    try:
        signed_by = verify(report, public)
    except SignatureError as error:
        raise UsageError(f"{file} cannot be trusted: {error}.") from None
    click.echo(f"Signed by the key {key_id(signed_by)} ({signed_by}).")
    if public is None:
        click.echo("The file does not say whose key that is: compare it with the owner's.")
    accepted = report.get("accepted") is True
    # Anybody can sign a report with a key of their own.
    about = clean(f"Lane {report.get('lane')}, {report.get('made_at')}")
    click.echo(f"{about}: {'accepted' if accepted else 'not accepted'}.")
    sys.exit(PASSED if accepted else NOT_PASSED)


def _rungs(assignments: Path, wanted: tuple[str, ...]) -> tuple[str, ...]:
    there = slugs(assignments) if assignments.is_dir() else ()
    if not there:
        raise UsageError(f"there are no assignments in {assignments}: run it in a checkout, or pass --assignments.")
    if unknown := set(wanted) - set(there):
        raise UsageError(f"no such rung: {', '.join(sorted(unknown))}. There are {', '.join(there)}.")
    return wanted or there


def _key(path: Path | None) -> SigningKey:
    """The key that signs. What it signed is worth as much as the reader's knowledge of whose key it is."""
    if path is None:
        return SigningKey.generate()
    try:
        if not path.exists():
            SigningKey.generate().save(path)
        return SigningKey.load(path)
    except (OSError, SignatureError) as error:
        raise UsageError(f"{path} cannot be used as the key: {error}") from None


@contextmanager
def _node_config(
    lane: str, gpu: str, sandbox: str, accepted: tuple[str, ...], environ: Mapping[str, str] = os.environ
) -> Iterator[Any]:
    """The node as this command is told it, working in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="ladder-accept-", ignore_cleanup_errors=True) as work:
        said = {
            "LADDER_WORK": work,
            "LADDER_LANES": lane,
            "LADDER_GPU": gpu or environ.get("LADDER_GPU", ""),
            "LADDER_SANDBOX": sandbox,
            "LADDER_SANDBOX_WAIVE": ",".join(accepted),
        }
        settings, errors = load("worker.settings", "worker"), load("worker.node_errors", "worker")
        try:
            config = settings.load_node_config({**environ, **said})
        except (ValueError, errors.UnfitError) as error:
            raise UsageError(str(error)) from None
        yield config


def _read(file: Path) -> dict[str, Any]:
    if file.stat().st_size > MAX_REPORT_BYTES:
        raise UsageError(f"{file} is too large to be a report.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise UsageError(f"{file} is not JSON.") from None
    if not isinstance(found, dict):
        raise UsageError(f"{file} is not a report.")
    return found
