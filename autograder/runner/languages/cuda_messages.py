"""What a C++ compiler says, for the student: the first error at a line of their own, the next few after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from autograder.emulator.translate import ENTRY_FILE
from autograder.languages.cuda import headers
from autograder.runner.report import SubmissionError

MOST_ERRORS = 5
MAX_TEXT = 300

_ERROR = re.compile(
    r"""^(?P<file>[^\n:(]+?)
        (?: :(?P<line>\d+)(?::\d+)?:\s+ | \((?P<bracketed>\d+)\):\s+ )
        (?P<kind>(?:fatal\ |catastrophic\ |internal\ compiler\ )?error|undefined\ reference|required\ from)
        (?:\s+\#[\w-]+)?
        (?:\s*:\s*|\s+)(?P<text>.*)$""",
    re.VERBOSE,
)
"""g++ and the linker say `name:12:5: error: …`, nvcc says `name(12): error: …`."""
_TWICE = re.compile(
    r"multiple definition of `(?P<text>[^']+)'.*?(?P<file>[^\n:/]+):(?P<line>\d+)(?P<bracketed>): first defined here"
)
_IN_A_TEMPLATE = "[-fpermissive]"
_OF_CUTLASS = re.compile(r"\b(?:cute|cutlass)/[\w./]+: No such file|cannot open source file .(?:cute|cutlass)/")
_MEMORY = re.compile(r"out of memory|virtual memory exhausted|Cannot allocate memory|Killed signal")


@dataclass(frozen=True)
class Said:
    """One error of a compiler's; `line` is 0 where it is outside of the student's file."""

    line: int
    text: str


def from_compiler(output: str, filename: str, source: str) -> SubmissionError:
    """The error that a student is shown.

    Args:
        output: all that the compiler and the linker said.
        filename: by which they call the student's file.
        source: the student's file, to know its last line.
    """
    if _MEMORY.search(output):
        message = "not enough memory to compile the file. Look for templates or arrays that grow without end."
        return SubmissionError("load", "CompileError", message)
    errors = _clear(list(_errors(output, filename, source)))
    if not errors:
        return SubmissionError("load", "CompileError", f"The compiler failed: {_last_line(output)}")
    first = next((error for error in errors if error.line), errors[0])
    if _OF_CUTLASS.search(first.text) and not headers.folder():
        errors = [said for said in errors if said is not first]
        first = replace(first, text=f"{first.text}: {headers.ABSENT}")
    others = [f"line {error.line}: {error.text}" for error in errors if error is not first and error.line]
    return SubmissionError("load", "CompileError", "\n".join([first.text, *others[:MOST_ERRORS]]), first.line)


def _clear(errors: list[Said]) -> list[Said]:
    """Without what g++ says of an unknown name in a template, where it also says that the name was not declared."""
    plain = {error.line for error in errors if not error.text.endswith(_IN_A_TEMPLATE)}
    return [error for error in errors if error.line not in plain or not error.text.endswith(_IN_A_TEMPLATE)]


def _errors(output: str, filename: str, source: str) -> Iterator[Said]:
    """Every error once, at the student's line that it comes from."""
    asked_at, seen = 0, set()
    for line in output.splitlines():
        if (twice := _TWICE.search(line)) is not None:
            text = f"`{twice['text']}` is defined here, but the harness uses this name. Rename it."
            yield Said(_line_in(twice, filename, source), text[:MAX_TEXT])
        found = _ERROR.match(line.strip())
        if found is None:
            continue
        place = _line_in(found, filename, source)
        if found["kind"] == "required from":
            # An error inside of a header follows, in a template that this line of the student's asked for.
            asked_at = place or asked_at
            continue
        text = found["text"].strip()[:MAX_TEXT]
        if found["kind"] == "undefined reference":
            name = text.removeprefix("to").strip(" `'")
            text = f"`{name}` is declared and used, but the file does not define it."
        said = Said(place or asked_at, text)
        asked_at = 0
        if said not in seen:
            seen.add(said)
            yield said


def _line_in(found: re.Match[str], filename: str, source: str) -> int:
    name = found["file"].rpartition("/")[2]
    number = int(found["line"] or found["bracketed"])
    last = 1 + source.removesuffix("\n").count("\n")
    if name == filename.rpartition("/")[2]:
        return min(number, last)
    # What is open at the end of the student's file is noticed in the text that follows it.
    return last if name == ENTRY_FILE and "at end of input" in found["text"] else 0


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:MAX_TEXT] if lines else "it said nothing"
