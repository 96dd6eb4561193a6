"""One call under Compute Sanitizer, on a small case: what it says of reads, writes, races and barriers, by line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from autograder import languages
from autograder.assignment import Assignment, Case, load_assignment
from autograder.contract import GradeRequest, GradeResult, Lane, Phase, Verdict, Visibility
from autograder.judge.phases import Phases
from autograder.judge.probes.one_call import MOST_NAME, MOST_TEXT, Found, OneCall, Way, look
from autograder.judge.probes.profiling import case_of
from autograder.judge.protocol.failure import Failure, clean
from autograder.profiling import compute_sanitizer
from autograder.sandbox import Sandbox
from autograder.sanitizer import MOST_FINDINGS, Check, Sanitized, SanitizerFinding

MOST_BYTES = 4 * 2**20
"""Moved by a call at least. The tool makes a kernel up to a hundred times slower; a larger case has to be asked for."""

MOST_BYTES_OF_FAULT = 64 * 2**20
"""The same where a device faulted, and one check looks at the call."""


def small_case_of(assignment: Assignment, request: GradeRequest) -> Case:
    """The public case that is asked for, or the one with the most work of those that move little."""
    if request.case:
        return case_of(assignment, request)
    cases = assignment.cases_for(request.lane)
    small = [case for case in cases if assignment.cost_of(case)[1] <= MOST_BYTES]
    if small:
        return max(small, key=lambda case: sum(assignment.cost_of(case)))
    return min(cases, key=lambda case: assignment.cost_of(case)[1])


def sanitize(request: GradeRequest, folder: Path, sandbox: Sandbox, phases: Phases) -> GradeResult:
    """Check every access of one call of a source.

    Args:
        folder: the public part of the assignment.
    """

    def read(call: OneCall, found: Found, result: GradeResult) -> GradeResult:
        return dataclasses.replace(result, sanitized=_read(call, found, request))

    return look(request, folder, sandbox, phases, Way("sanitized", small_case_of, read, tuple(Check)))


def of_fault(result: GradeResult, request: GradeRequest, folder: Path, sandbox: Sandbox, phases: Phases) -> GradeResult:
    """A result, with the line at fault where a device's memory was accessed wrongly in a public case.

    Args:
        folder: the public part of the assignment.
    """
    wrong = (case for case in result.cases if case.visibility is Visibility.public)
    name = next((case.name for case in wrong if case.verdict is Verdict.illegal_access), "")
    if request.lane is Lane.cpu or not name:
        return result
    assignment = load_assignment(folder)
    case = case_of(assignment, dataclasses.replace(request, case=name))
    if assignment.cost_of(case)[1] > MOST_BYTES_OF_FAULT:
        return result
    phases.enter(Phase.profiling)
    call = OneCall(assignment, case, request, folder, sanitize=[Check.memcheck])
    try:
        found = call.ask(request, sandbox)
    finally:
        call.close()
    phases.enter(Phase.reporting)
    made = None if isinstance(found, Failure) else _read(call, found, request)
    return dataclasses.replace(
        result, sanitized=made if made is not None and made.findings else None, phases=phases.times()
    )


def _read(call: OneCall, found: Found, request: GradeRequest) -> Sanitized:
    name = languages.of(request.language).name_in_code(request.filename)
    clean_checks: list[Check] = []
    findings: list[SanitizerFinding] = []
    missing = dict(found.problems)
    for check in map(Check, found.files):
        log = compute_sanitizer.read(check, found.files[check.value].decode("utf-8", "replace"), name)
        findings += log.findings
        if log.ended and not log.findings and check.value not in missing:
            clean_checks.append(check)
        elif not log.findings:
            missing.setdefault(check.value, log.said or "The sanitizer's log could not be read.")
    return Sanitized(
        case=call.case.name,
        size=call.size,
        tool=found.tool,
        clean=tuple(clean_checks),
        findings=tuple(_cleaned(one) for one in findings[:MOST_FINDINGS]),
        left_out=max(0, len(findings) - MOST_FINDINGS),
        missing=missing,
        seconds=found.seconds,
    )


def _cleaned(one: SanitizerFinding) -> SanitizerFinding:
    return dataclasses.replace(
        one, what=clean(one.what, MOST_NAME), kernel=clean(one.kernel, MOST_NAME), thread=clean(one.thread, MOST_NAME),
        detail=clean(one.detail, MOST_TEXT),
    )  # fmt: skip
