"""The judge as a process: one folder per job, one JSON line per event.

    python -m autograder.judge [options] serve          jobs from stdin, {"folder": …} a line
    python -m autograder.judge [options] once FOLDER    one job, and its result on stdout

A job's folder holds `request.json` and, unpacked, `bundle/assignments/<slug>` and `bundle/reference/<slug>`; where
there is no bundle, the folders given as options are used. Its result is also written there, as `result.json`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import torch

from autograder import codec, languages
from autograder.assignment import Limits
from autograder.contract import Event, GradeRequest, GradeResult, Lane, Language, Verdict
from autograder.errors import GpuError, HarnessError
from autograder.judge.compile import cross_compile
from autograder.judge.correctness import explain, summary
from autograder.judge.grading import grade, refuse_shown
from autograder.judge.protocol import devices, loading
from autograder.judge.timing.references import References
from autograder.sandbox import Sandbox

logger = logging.getLogger(__name__)

BROKEN = 70
"""Exit status of a judge that cannot use its device any more."""

PROCESS_SANDBOX = "autograder.sandbox.process:ProcessSandbox"


class Server:
    """Grades folders, one after the other; the sandbox and the references stay warm between them.

    Attributes:
        failed: the last job ended in a failure of ours.
    """

    def __init__(self, assignments: Path, reference: Path | None, sandbox: Sandbox, out: TextIO) -> None:
        self._assignments = assignments
        self._reference = reference
        self._sandbox = sandbox
        self._references = References(sandbox)
        self._out = out
        self.failed = False

    def serve(self, jobs: TextIO) -> None:
        """Answer every line with events and a result, until the input ends."""
        for line in jobs:
            if line.strip():
                self.job(line)

    def job(self, line: str) -> None:
        """One job as a line of JSON; whatever it is, it is answered."""
        try:
            self.folder(Path(json.loads(line)["folder"]))
        except Exception:  # noqa: BLE001 - the job's boundary: a line that is no job must not end the judge
            traceback.print_exc(file=sys.stderr)
            self._say(Event(result=GradeResult(Verdict.grader_error, summary.GRADER_FAILED, ())))

    def folder(self, folder: Path) -> None:
        """Grade one folder: say its events, write its result."""
        request = codec.loads(GradeRequest, (folder / "request.json").read_bytes())
        result = self._graded(folder, request)
        self._write(folder, result)
        self._say(Event(result=result))
        if result.verdict is Verdict.grader_error and not _works(request.lane):
            # Whoever started this judge starts another, which has a device again.
            raise SystemExit(BROKEN)

    def warm(self, languages: Sequence[Language], lane: Lane) -> None:
        """Have ready what the lane's first job would wait for: toolchains, the device, the native null exchange.

        Nothing is waited for that others do, and what cannot be made ready is the first job's to fail at.
        """
        # Limits of a manifest that names none: containers that wait are kept by their limits.
        limits = loading.limits_on(lane, Limits())
        for language in languages:
            cross_compile.prewarm(self._sandbox, language)
            # The last is made first: no job can do without it.
            self._sandbox.prewarm(limits, language, lane)
        if lane is not Lane.cpu:
            self._warm_device(lane)

    def _warm_device(self, lane: Lane) -> None:
        try:
            device = devices.of(lane)
            device.synchronize()
            if device.rules.batches:
                self._references.exchanges(device).built()
            explain.rehearse(device.where)
        except (HarnessError, RuntimeError) as error:  # torch's own, where a device fails or has no memory left.
            logger.warning("the lane %s could not be made ready: %s", lane, error)

    def close(self) -> None:
        """End the warm runners and the sandbox."""
        self._references.close()
        self._sandbox.close()

    def _graded(self, folder: Path, request: GradeRequest) -> GradeResult:
        bundle = folder / "bundle"
        assignments, staff = self._assignments, self._reference
        if bundle.is_dir():
            assignments, staff = bundle / "assignments", bundle / "reference"
        return grade(
            request,
            assignment_folder=assignments / request.slug,
            reference_folder=staff / request.slug if staff is not None and staff.is_dir() else None,
            sandbox=self._sandbox,
            emit=self._say,
            references=self._references,
            keep=lambda name, data: _leave(folder, name, data),
        )

    def _write(self, folder: Path, result: GradeResult) -> None:
        """Write `result.json` whole or not at all."""
        (folder / "result.json.new").write_text(codec.dumps(result), encoding="utf-8")
        (folder / "result.json.new").replace(folder / "result.json")

    def _say(self, event: Event) -> None:
        self.failed = event.result is not None and event.result.verdict is Verdict.grader_error
        self._out.write(codec.dumps(event) + "\n")
        self._out.flush()


def _leave(folder: Path, name: str, data: bytes) -> None:
    """A file for people, beside the result; without it the result stands as well."""
    try:
        (folder / "artefacts").mkdir(exist_ok=True)
        (folder / "artefacts" / name).write_bytes(data)
    except OSError as error:
        logger.warning("the file %s was not left: %s", name, error)


def _works(lane: Lane) -> bool:
    """Whether the lane's device can still be used by this process; one that was never there is no reason to end."""
    try:
        return devices.of(lane).works()
    except GpuError:
        return True


def load_sandbox(dotted: str) -> Sandbox:
    """Make the driver that `module:Class` names."""
    module, _, name = dotted.partition(":")
    driver: Any = getattr(importlib.import_module(module), name)
    made: Sandbox = driver()
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    sys.dont_write_bytecode = True
    try:
        refuse_shown(options.reference)
    except HarnessError as error:
        sys.exit(str(error))
    # One thread: the oracle's helpers would go on spinning while a runner is timed.
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = Server(options.assignments, options.reference, load_sandbox(options.sandbox), _own_stdout())
    try:
        if options.command == "serve":
            server.warm(options.warm, options.lane)
            server.serve(sys.stdin)
        else:
            server.job(json.dumps({"folder": str(options.folder)}))
        return int(options.command == "once" and server.failed)
    finally:
        server.close()


def _own_stdout() -> TextIO:
    """Keep stdout for events; whatever else prints goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m autograder.judge")
    parser.add_argument("--assignments", type=Path, default=Path("assignments"))
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--sandbox", default=PROCESS_SANDBOX, help="module:Class")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve")
    warm = [language for language in Language if languages.of(language).warm]
    serve.add_argument("--warm", type=Language, nargs="*", default=warm, help="toolchains to import at once")
    serve.add_argument("--lane", type=Lane, default=Lane.cpu, help="to be ready for; jobs of any lane are graded")
    commands.add_parser("once").add_argument("folder", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
