"""A `.cu` file compiled by nvcc for every target: machine code, PTX, a library to follow its host code with, errors.

Nothing of the file runs here. The compiler reads what a student wrote, so it is held short: address space, sizes of
files, and time.
"""

from __future__ import annotations

import math
import os
import re
import resource
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.compile_checks.child import BACKSTOP
from autograder.protocol import Load
from autograder.runner.languages import cuda_messages, nvcc
from autograder.runner.report import SubmissionError

COMPILER_BYTES = 2 * 2**30
"""Address space of each of the compiler's processes; the runner of a compilation has less of memory than a call's."""
FILE_BYTES = 64 * 2**20
"""Of any file that the compiler writes."""
MOST_SAID = 256 * 1024
"""Bytes of what the compiler says that are looked at."""

_ASSEMBLER = re.compile(
    r"^ptxas (?:(?P<file>\S+), line (?P<line>\d+); )?(?:error|fatal)\s*: (?P<text>.*)$", re.MULTILINE
)
_ENTRY = re.compile(r"Entry function '([^']+)'")
_ABSENT = re.compile("cannot open source file|No such file or directory")
_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)\s")
_INLINED = re.compile(r"inlined_at\s+\d+\s+(\d+)")


@dataclass(frozen=True)
class Refusal:
    """What the device's assembler says of one kernel, or of the file.

    Attributes:
        function: the kernel's symbol; `""` where it is not said.
        line: of the student's file; 0 where it is not known.
    """

    text: str
    function: str = ""
    line: int = 0


@dataclass(frozen=True)
class Made:
    """What came of one target.

    Attributes:
        error: the file is no C++ for this target; then there is nothing else.
        refusals: the assembler's; then there is no machine code.
        stopped: the compiler had no time left.
    """

    cubin: bytes = b""
    ptx: str = ""
    error: SubmissionError | None = None
    refusals: tuple[Refusal, ...] = ()
    stopped: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether a line or a kernel of the student's is at fault, and not what this node has of memory and headers."""
        in_file = self.error is not None and self.error.line > 0 and not _ABSENT.search(self.error.message)
        return in_file or any(refusal.line or refusal.function for refusal in self.refusals)


class Compiler:
    """nvcc, for one file.

    Args:
        folder: of its own.
        budget_s: of processors, for all targets; what does not end by then is stopped.

    Attributes:
        library: the file with its host code, once a target has compiled.
    """

    def __init__(self, load: Load, folder: Path, path: str, budget_s: float) -> None:
        self.library: Path | None = None
        self._load = load
        self._folder = folder
        self._path = path
        self._left_s = budget_s
        self._name = nvcc.write_source(load, folder / "student")

    def compile(self, target: str) -> Made:
        """Compile for one target. The first that compiles gives the library too; host code is the same for all."""
        made = self._folder / target
        made.mkdir()
        library = made / "kernel.so"
        # A library takes the host's compiler too, which is three times as long.
        wanted = ["-cubin", "-o", str(made / "kernel.cubin")]
        if self.library is None:
            wanted = [*nvcc.LIBRARY, "-cudart", "none", "-o", str(library)]
        status, said = self._run(target, [*wanted, "--keep", "--keep-dir", str(made)])
        if status is None:
            return Made(stopped=True)
        ptx = _text(next(made.glob("*.ptx"), None))
        if status != 0:
            refusals = tuple(_refusals(said, ptx))
            error = None if refusals else self._error(said)
            return Made(ptx=ptx, error=error, refusals=refusals)
        if library.exists():
            self.library = library
        return Made(next(made.glob("*.cubin")).read_bytes(), ptx)

    def _run(self, target: str, wanted: list[str]) -> tuple[int | None, str]:
        """The exit status, nothing for one that was stopped, and what was said."""
        command = [self._path, *nvcc.code_for(target), *nvcc.LANGUAGE, *wanted]
        said = self._folder / f"{target}.said"
        most_s, before_s = max(1, math.ceil(self._left_s)), _processor_s()
        with said.open("wb") as output:
            process = subprocess.Popen(
                [*command, "-x", "cu", self._name], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"}, cwd=self._folder / "student", start_new_session=True,
                preexec_fn=partial(_hold_short, most_s),  # noqa: PLW1509 -- this process has no threads.
            )  # fmt: skip
            status: int | None = None
            try:
                status = process.wait(BACKSTOP * most_s)
            except subprocess.TimeoutExpired:
                # nvcc's own processes are of its session.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self._left_s = 0.0
        self._left_s -= _processor_s() - before_s
        return None if status and self._left_s <= 0 else status, _text(said)

    def _error(self, said: str) -> SubmissionError:
        if any(path.stat().st_size >= FILE_BYTES for path in self._folder.rglob("*")):
            what = "Look for large initialised arrays, and for templates or includes without end."
            message = f"the compiler wrote more than {FILE_BYTES // 2**20} MiB. {what}"
            return SubmissionError("load", "CompileError", message)
        return cuda_messages.from_compiler(said, self._name, self._load.source)


def _processor_s() -> float:
    """What processes that this one has waited for, and theirs, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_entry(ptx: str, function: str) -> str:
    """The PTX of one kernel, with the names of the files that its lines are of."""
    begin = re.search(rf"^.*\.entry\s+{re.escape(function)}\(", ptx, re.MULTILINE)
    if begin is None:
        return ""
    end = ptx.find("\n}", begin.start())
    files = "\n".join(re.findall(r"^\s*\.file\s.*$", ptx, re.MULTILINE))
    return f"{files}\n{ptx[begin.start() : end + 2 if end >= 0 else None]}\n"


def _refusals(said: str, ptx: str) -> Iterator[Refusal]:
    """Every error of the assembler's but its last word, which says that there were some."""
    for found in _ASSEMBLER.finditer(said):
        if "aborted due to errors" in found["text"]:
            continue
        entry = _ENTRY.search(found["text"])
        line = _line_behind(ptx, int(found["line"])) if found["line"] else 0
        function = entry[1] if entry else _entry_around(ptx, int(found["line"] or 0))
        yield Refusal(found["text"][: cuda_messages.MAX_TEXT], function, line)


def _line_behind(ptx: str, number: int) -> int:
    """The line of the source that a line of PTX came from; of an inlined function, where it was inlined."""
    for row in reversed(ptx.split("\n")[:number]):
        if (found := _LOC.match(row)) is not None:
            inlined = _INLINED.search(row)
            return int((inlined or found)[1])
    return 0


def _entry_around(ptx: str, number: int) -> str:
    for row in reversed(ptx.split("\n")[:number]):
        if (found := re.search(r"\.entry\s+([\w$]+)", row)) is not None:
            return found[1]
    return ""


def _text(path: Path | None) -> str:
    """As much of a file as is looked at; PTX is cut to the same size where it is shown."""
    if path is None or not path.exists():
        return ""
    with path.open("rb") as file:
        return file.read(MOST_SAID if path.suffix == ".said" else FILE_BYTES).decode(errors="replace")


def _hold_short(seconds: int) -> None:
    """Of this process and each that it starts.

    Args:
        seconds: of a processor.
    """
    nvcc.limit_memory(COMPILER_BYTES)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
