"""A corpus graded as a node grades it, one row of JSON a program: what tests.styles and tests.exploits have in common.

A program that is in the file of rows already is not graded again: started again, a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

from autograder import codec
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict, Work
from autograder.judge import References, grade
from autograder.sandbox import Sandbox

ROOT = Path(__file__).parents[1]
MOST_TRIES = 3
HALVES = ("first_half", "second_half")
"""The second half of a corpus was written by people who had not read the judge, and graded once its rules were set."""


class Program(Protocol):
    """What is graded."""

    @property
    def file(self) -> str:
        """Its name in the corpus."""

    @property
    def path(self) -> Path:
        """Where it lies."""

    @property
    def rung(self) -> str:
        """The assignment that it is handed in to."""

    @property
    def language(self) -> Language:
        """What it is written in."""


AnyProgram = TypeVar("AnyProgram", bound=Program)


@dataclass(frozen=True)
class Stand:
    """What grades."""

    sandbox: Sandbox
    references: References

    def grade(self, program: Program, lane: Lane, work: Work, *, remeasured: int = 0) -> GradeResult:
        """One attempt at a program."""
        source = program.path.read_text(encoding="utf-8")
        request = GradeRequest(
            program.rung, "", program.language, lane, Mode.submission, source, program.path.name, work,
            remeasured=remeasured,
        )  # fmt: skip
        return grade(
            request,
            assignment_folder=ROOT / "assignments" / program.rung,
            reference_folder=ROOT / "reference" / program.rung,
            sandbox=self.sandbox,
            references=self.references,
        )

    def attempts(self, program: Program, lane: Lane) -> list[dict[str, Any]]:
        """As a node makes them: a check, then a measurement for as often as the judge asks."""
        check = self._attempt(program, lane, Work.check)
        return [check, *self.measurements(program, lane)] if _passed(check) else [check]

    def measurements(self, program: Program, lane: Lane) -> list[dict[str, Any]]:
        """A measurement, and further ones for as often as the judge asks."""
        made: list[dict[str, Any]] = []
        for remeasured in range(MOST_TRIES):
            made.append(self._attempt(program, lane, Work.measure, remeasured=remeasured))
            if not _passed(made[-1]) or not made[-1]["result"]["remeasure"]:
                break
        return made

    def _attempt(self, program: Program, lane: Lane, work: Work, *, remeasured: int = 0) -> dict[str, Any]:
        start = time.monotonic()
        result = self.grade(program, lane, work, remeasured=remeasured)
        return {"work": work.value, "seconds": time.monotonic() - start, "result": codec.to_json(result)}


def _passed(attempt: Mapping[str, Any]) -> bool:
    return bool(attempt["result"]["verdict"] == Verdict.passed)


@contextmanager
def stand(driver: str) -> Iterator[Stand]:
    """A sandbox, `module:Class`, and warm references, with one thread as the judge's own process has."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    module, _, name = driver.partition(":")
    sandbox = getattr(import_module(module), name)()
    references = References(sandbox)
    try:
        yield Stand(sandbox, references)
    finally:
        references.close()
        sandbox.close()


def options(about: str | None, add: Callable[[argparse.ArgumentParser], object] = lambda _: None) -> argparse.Namespace:
    """The command line of a corpus: `grade` with what `add` adds to it, or `table`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    grading = commands.add_parser("grade")
    grading.add_argument("--lane", type=Lane, required=True)
    grading.add_argument("--out", type=Path, required=True)
    grading.add_argument("--half", choices=HALVES, nargs="*", default=[])
    grading.add_argument("--limit-s", type=float, default=float("inf"))
    grading.add_argument("--sandbox", default="autograder.sandbox.process:ProcessSandbox")
    add(grading)
    grading.add_argument("files", nargs="*")
    table = commands.add_parser("table")
    table.add_argument("files", type=Path, nargs="+")
    return parser.parse_args()


def waiting(programs: Iterable[AnyProgram], asked: argparse.Namespace) -> Iterator[AnyProgram]:
    """Those that are asked for and not graded yet, until the time is over."""
    began = time.monotonic()
    done = {row["file"] for row in rows_of(asked.out)}
    for program in programs:
        if program.file in done or (asked.files and program.file not in asked.files):
            continue
        if time.monotonic() - began > asked.limit_s:
            print("out of time: call again to go on")
            return
        yield program


def keep(row: dict[str, Any], path: Path) -> None:
    """Add a row to the file, and say what it shows."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, separators=(",", ":")) + "\n")
    print(line_of(row), flush=True)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """What was graded so far."""
    if not path.is_file():
        return []
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
    return [json.loads(line) for line in text.splitlines()]


def results_of(row: Mapping[str, Any]) -> list[GradeResult]:
    """The result of each attempt."""
    return results(row["attempts"])


def results(attempts: Iterable[Mapping[str, Any]]) -> list[GradeResult]:
    """The result of each."""
    return [codec.from_json(GradeResult, one["result"]) for one in attempts]


def accused(graded: Sequence[GradeResult]) -> bool:
    """Whether staff were shown anything: a finding, or a hold."""
    return any(one.held or one.findings for one in graded)


def line_of(row: dict[str, Any]) -> str:
    """One program, in one line."""
    graded = results_of(row)
    last = graded[-1]
    seconds = ", ".join(f"{one['work']} {one['seconds']:.1f}" for one in row["attempts"])
    phases = " ".join(f"{one.phase} {one.seconds:.1f}" for one in graded[0].phases)
    plain = {one["case"]: one["ratio"] for one in row.get("plain", ()) if "case" in one}
    times = ", ".join(
        f"{one.case} {one.time_us:.0f} µs {one.ratio:.4f} by {one.clock}"
        + (f" (plain {plain[one.case]:.4f})" if one.case in plain else "")
        for one in last.measurements
    )
    found = [kind.kind.value for result in graded for kind in result.findings]
    said = f" {last.explanation[:200]!r}" if last.verdict != "passed" else ""
    held = f" HELD {last.held_reason}" if last.held else ""
    return f"{row['file']}: {last.verdict}{said}{held} findings {found} [{seconds}; {phases}] {times}"
