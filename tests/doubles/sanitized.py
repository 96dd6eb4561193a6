"""What a node says that ran the sanitizer, for lanes that no machine here has."""

from __future__ import annotations

import dataclasses

from autograder.contract import CaseResult, GradeResult, Verdict, Visibility
from autograder.sanitizer import Check, Sanitized, SanitizerFinding

SANITIZED = Sanitized(
    case="small",
    size="n=1,000",
    tool="Compute Sanitizer 2025.3.1.0",
    clean=(Check.synccheck,),
    findings=(
        SanitizerFinding(
            Check.memcheck, "Invalid __global__ write of size 4 bytes", "add<float>(const float *)", line=1,
            thread="thread (3,0,0) in block (1,0,0)", count=24, detail="and is <b>1 bytes</b> after the allocation",
        ),
        SanitizerFinding(
            Check.racecheck, "Write and read without a barrier between them", "sum", line=1, other_line=2, count=96,
        ),
    ),
    seconds=21.0,
)  # fmt: skip


def sanitized_result(**changes: object) -> GradeResult:
    """What an attempt says that made it; `changes` are of what was found."""
    case = CaseResult("small", "sizes", "sizes", Visibility.public, False, None, "It was sanitized.")
    found = dataclasses.replace(SANITIZED, **changes)  # type: ignore[arg-type]
    return GradeResult(Verdict.passed, f"One call of the case {found.case} was sanitized.", (case,), sanitized=found)
