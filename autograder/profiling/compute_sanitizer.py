"""Compute Sanitizer: the one place that knows its command line and the text that it prints.

A log is made of blocks. A block begins with a line that says what happened; the lines below it, indented, say where:

    ========= Invalid __global__ write of size 4 bytes
    =========     at add(const float *, float *, int)+0x90 in add.cu:12
    =========     by thread (3,0,0) in block (1,0,0)
    =========     Access to 0x7f… is out of bounds
    =========
    ========= Error: Race reported between Write access at sum(float *)+0x40 in sum.cu:9
    =========     and Read access at sum(float *)+0x80 in sum.cu:11 [96 hazards]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from autograder.sanitizer import Check, SanitizerFinding

ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
"""Tensors have memory of exactly their size, so that what lies behind one is nobody's."""
_OPTIONS = (
    "--target-processes", "all", "--show-backtrace", "no", "--report-api-errors", "no", "--print-limit", "2000",
    "--demangle", "simple", "--launch-timeout", "30",
)  # fmt: skip
_BLOCK = re.compile(r"^=========(?P<indent> +)(?P<text>\S.*)$")
_BROKEN_OFF = re.compile(r"^(Error: .*(timed.out|attachable|terminated before|initializ|not supported).*|Internal .*)$")
_PLACE = re.compile(r"^at (?P<kernel>.+?)(?:\+0x[0-9a-f]+)?(?: in (?P<file>\S+):(?P<line>\d+))?$")
_THREAD = re.compile(r"by (thread \(\d+,\d+,\d+\) in block \(\d+,\d+,\d+\))")
_RACE = re.compile(
    r"^(?:Error|Warning): Race reported between (?P<first>\w+) access at (?P<kernel>.+?)(?:\+0x[0-9a-f]+)?"
    r"(?: in (?P<file>\S+):(?P<line>\d+))?$"
)
_SECOND = re.compile(
    r"^and (?P<second>\w+) access at .+?(?:\+0x[0-9a-f]+)?(?: in (?P<file>[^\s:]+):(?P<line>\d+))?"
    r"(?: \[(?P<hazards>\d+) hazards?\])?$"
)
_ACCESS = re.compile(r"^Access (?:to|at) 0x[0-9a-f]+")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SUMMARY = re.compile(r"^(ERROR|RACECHECK) SUMMARY: \d+")


@dataclass(frozen=True)
class Log:
    """One check's log.

    Attributes:
        ended: the tool printed its summary: what is not listed did not happen in this call.
        findings: one for each place and kind.
        said: why it broke off, in the tool's words; `""` where it did not.
    """

    ended: bool
    findings: tuple[SanitizerFinding, ...]
    said: str


def command(tool: str, check: Check, log: str, program: Sequence[str]) -> list[str]:
    """The tool's command line for one check of a program.

    Args:
        tool: path of `compute-sanitizer`.
        log: path of the file that it writes.
    """
    return [tool, "--tool", check.value, "--log-file", log, *_OPTIONS, *program]


def read(check: Check, text: str, name_in_code: str) -> Log:
    """What a log says.

    Args:
        name_in_code: as which the machine code names the student's file; lines of other files are not theirs.
    """
    found: dict[tuple[str, str, int, int], SanitizerFinding] = {}
    said, ended = "", False
    for head, rest in _blocks(text):
        if _SUMMARY.match(head):
            ended = True
        elif _BROKEN_OFF.match(head):
            said = said or head
        elif (one := _finding(check, head, rest, name_in_code)) is not None:
            key = (one.what, one.kernel, one.line, one.other_line)
            before = found.get(key)
            found[key] = replace(before, count=before.count + one.count) if before else one
    ordered = sorted(found.values(), key=lambda one: (one.line, one.other_line))
    return Log(ended and not said, tuple(ordered), said)


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    head, rest = "", []
    for line in text.splitlines():
        match = _BLOCK.match(line.rstrip())
        if match is None:
            continue
        if len(match["indent"]) > 1:
            rest.append(match["text"])
            continue
        if head:
            yield head, rest
        head, rest = match["text"], []
    if head:
        yield head, rest


def _finding(check: Check, head: str, rest: Sequence[str], name_in_code: str) -> SanitizerFinding | None:
    if race := _RACE.match(head):
        second = next((match for line in rest if (match := _SECOND.match(line))), None)
        other = second["second"].lower() if second else "another"
        return SanitizerFinding(
            check=check,
            what=f"{race['first']} and {other} without a barrier between them",
            kernel=race["kernel"],
            line=_line(race, name_in_code),
            other_line=_line(second, name_in_code) if second else 0,
            count=int(second["hazards"] or 1) if second else 1,
        )
    place = _PLACE.match(rest[0]) if rest else None
    if place is None:
        return None
    threads = [match for line in rest if (match := _THREAD.search(line))]
    more = [_ADDRESS.sub("", _ACCESS.sub("The access", line)) for line in rest[1:] if not _THREAD.search(line)]
    return SanitizerFinding(
        check=check, what=head, kernel=place["kernel"], line=_line(place, name_in_code),
        thread=threads[0][1] if threads else "", detail=" ".join(more[:2]),
    )  # fmt: skip


def _line(match: re.Match[str], name_in_code: str) -> int:
    file = match["file"] or ""
    return int(match["line"]) if file.rsplit("/", 1)[-1] == name_in_code.rsplit("/", 1)[-1] else 0
