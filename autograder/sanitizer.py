"""What Compute Sanitizer found in one call. Standard library only: judge, worker, server and client read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

MOST_FINDINGS = 40


class Check(StrEnum):
    """What the tool is asked to look for, each in a run of its own."""

    memcheck = "memcheck"
    """Reads and writes outside of what was allocated, or misaligned."""
    racecheck = "racecheck"
    """Accesses of two threads to the same shared memory without a barrier between them."""
    synccheck = "synccheck"
    """Barriers that not all of a block's threads reach, or that are used wrongly."""


@dataclass(frozen=True)
class SanitizerFinding:
    """What one place of a kernel did, however many threads did it.

    Attributes:
        what: in the tool's words, `Invalid __global__ write of size 4 bytes`.
        line: of the student's file, from 1; 0 where the machine code names none.
        other_line: of a race's second access; 0 where there is none.
        thread: the first of them, `thread (3,0,0) in block (1,0,0)`; `""` where the tool names none.
        count: threads, or hazards of a race.
        detail: what else the tool says of the first one.
    """

    check: Check
    what: str
    kernel: str
    line: int = 0
    other_line: int = 0
    thread: str = ""
    count: int = 1
    detail: str = ""


@dataclass(frozen=True)
class Sanitized:
    """One call of one public case under the tool's checks.

    Attributes:
        case: its name.
        size: in words, `n=1,048,576`.
        tool: with its version; `""` where there is none.
        clean: checks that came to their end and found nothing.
        findings: of the others, by check and line; at most `MOST_FINDINGS`.
        left_out: findings beyond them.
        missing: why a check did not come to its end, by check.
    """

    case: str
    size: str
    tool: str
    clean: tuple[Check, ...] = ()
    findings: tuple[SanitizerFinding, ...] = ()
    left_out: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
