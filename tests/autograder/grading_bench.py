"""A bench for grading tests: the `double` assignment of the fixtures, a real sandbox, real runners."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from autograder.contract import CaseResult, Event, GradeRequest, GradeResult, Lane, Language, Mode, Work
from autograder.judge import ALL_ON, Defences, References, grade
from autograder.sandbox.process import ProcessSandbox

FIXTURES = Path(__file__).parents[1] / "fixtures"
ASSIGNMENT = FIXTURES / "assignments" / "double"
REFERENCE = FIXTURES / "reference" / "double"
GOOD = (REFERENCE / "solutions" / "triton.py").read_text(encoding="utf-8")
HEAD = "def double(a, out, negative, m, n, a_row):\n"
WORK = "    for row in range(m):\n        out[row] = a[row] * 2\n        negative[row] = (a[row] < 0).sum()\n"
IMPORTS = "import ctypes, mmap, os, random, signal, sys, threading, time\nimport torch\n"


def kernel(before: str = "", after: str = "", *, top: str = "") -> str:
    """A submission that does the work, with lines before and after it; `top` stands outside the function."""
    return f"{IMPORTS}{top}\n{HEAD}{_indented(before)}{WORK}{_indented(after)}"


def body(lines: str, *, top: str = "") -> str:
    """A submission whose entry is just these lines."""
    return f"{IMPORTS}{top}\n{HEAD}{_indented(lines)}"


def _indented(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())


def edited(tmp_path: Path, *edits: tuple[str, str]) -> Path:
    """A copy of the assignment with edits of its manifest."""
    folder = tmp_path / "double"
    shutil.copytree(ASSIGNMENT, folder)
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "assignment.toml").write_text(text, encoding="utf-8")
    return folder


@dataclass
class Bench:
    """Grades sources, and keeps the events of the last grading."""

    sandbox: ProcessSandbox
    references: References
    events: list[Event] = field(default_factory=list)

    def grade(
        self,
        source: str,
        *,
        mode: Mode = Mode.submission,
        assignment: Path = ASSIGNMENT,
        reference: Path | None = REFERENCE,
        defences: Defences = ALL_ON,
        work: Work = Work.all,
    ) -> GradeResult:
        self.events.clear()
        request = GradeRequest("double", "", Language("triton"), Lane.cpu, mode, source, "double.py", work)
        return grade(
            request,
            assignment_folder=assignment,
            reference_folder=reference,
            sandbox=self.sandbox,
            emit=self.events.append,
            defences=defences,
            references=self.references,
        )

    def finished(self) -> list[CaseResult]:
        return [event.case.case for event in self.events if event.case]
