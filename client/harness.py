"""The judge on this machine: the same program that a node runs, as a process, on a folder.

Here nothing judges and nothing imports torch: a request and the assignment's files are staged, and the judge says one
event a line.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from autograder import codec, languages
from autograder.contract import GradeRequest, Verdict
from autograder.languages.record import HARNESS
from client.api import Json
from client.errors import OursError, UsageError, clean

MAX_TOLD = 2000
"""Characters of the judge's own trouble that are shown."""


def require_harness(*written_in: str) -> None:
    """Raise a `UsageError` that says what is missing; also of what these languages need beside the others."""
    if sys.platform != "linux":
        raise UsageError(
            "the local judge needs Linux (on Windows: WSL). `ladder check --remote` runs on the course's nodes."
        )
    _require("the local judge", ("torch", *languages.imports(), "numpy"), HARNESS)
    for record in map(languages.of, written_in):
        _require(f"grading {record.title} here", record.imports, record.extra)


def _require(who: str, modules: Iterable[str], extra: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{who} needs {', '.join(missing)}: pip install 'kernel-ladder[{extra}]'. "
            "`ladder check --remote` runs on the course's nodes and needs nothing here."
        )


def grade(request: GradeRequest, assignment: Path, reference: Path | None) -> Iterator[Json]:
    """Yield the judge's events as parsed JSON; the last has the `result`.

    Args:
        assignment: folder with `assignment.toml` and `problem.py`.
        reference: the staff's folder; `None` grades on public cases only, beside the last milestone or the starter.

    Raises:
        UsageError: the harness is not installed, or the folder is no assignment.
        OursError: the judge ended without a result.
    """
    require_harness(request.language)
    if not (assignment / "assignment.toml").is_file():
        raise UsageError(f"{assignment} has no assignment.toml. `ladder get {request.slug}` fetches the assignment.")
    with tempfile.TemporaryDirectory(prefix="ladder-check-") as folder:
        _stage(Path(folder), request, assignment, reference)
        yield from _events(Path(folder))


def _stage(folder: Path, request: GradeRequest, assignment: Path, reference: Path | None) -> None:
    (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")
    parts = {"assignments": assignment} | ({"reference": reference} if reference else {})
    for kind, source in parts.items():
        shutil.copytree(source, folder / "bundle" / kind / request.slug, ignore=shutil.ignore_patterns("__pycache__"))


def _events(folder: Path) -> Iterator[Json]:
    command = [sys.executable, "-P", "-m", "autograder.judge", "once", str(folder)]
    verdict = None
    with (folder / "stderr").open("w+", encoding="utf-8", errors="replace") as trouble:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=trouble, text=True, stdin=subprocess.DEVNULL
        ) as judge:
            for line in judge.stdout or ():
                event = json.loads(line)
                verdict = event["result"]["verdict"] if event.get("result") else verdict
                yield event
        trouble.seek(0)
        said = trouble.read()[-MAX_TOLD:].strip()
    if verdict is None:
        raise OursError(f"the judge ended without a result (status {judge.returncode}).\n{said}")
    if verdict == Verdict.grader_error.value and said:
        click.echo(f"what the judge said:\n{clean(said)}", err=True)
