"""A grading in two halves put together: what a check found and what was measured after it. Pure."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from autograder.contract import MAX_LOG_CHARS, CaseResult, GradeResult, Verdict
from autograder.errors import ContractError
from autograder.findings import together

T = TypeVar("T")


def merged(check: GradeResult, measure: GradeResult) -> GradeResult:
    """The whole result. Every timed call was a checked call, so a measurement may end in a worse verdict.

    Args:
        check: it passed; its cases are all there are.
        measure: its cases are the ranked ones again.

    Raises:
        ContractError: it measured what was not checked, or what is not ranked.
    """
    cases = _cases(check, measure)
    failed = measure.verdict is not Verdict.passed
    worse = measure if failed else check
    return dataclasses.replace(
        measure,
        verdict=worse.verdict,
        explanation=worse.explanation,
        told_case=worse.told_case,
        section=worse.section,
        error=worse.error,
        cases=cases,
        findings=together(check.findings, measure.findings),
        launches=measure.launches or check.launches,
        device_kernels=measure.device_kernels or check.device_kernels,
        compiled=measure.compiled or check.compiled,
        counted=measure.counted or check.counted,
        requirements=measure.requirements or check.requirements,
        gpu=measure.gpu or check.gpu,
        held=check.held or measure.held,
        held_reason=" ".join(_distinct(_said(check.held_reason), _said(measure.held_reason))),
        log="\n".join(_distinct(_said(check.log), _said(measure.log)))[:MAX_LOG_CHARS],
        phases=check.phases + measure.phases,
        environment={**check.environment, **measure.environment},
    )


def _cases(check: GradeResult, measure: GradeResult) -> tuple[CaseResult, ...]:
    again = {case.name: case for case in measure.cases}
    if strange := again.keys() - {case.name for case in check.cases if case.ranked}:
        raise ContractError(f"case {min(strange)!r} was measured and is no ranked case of the check")
    return tuple(_worse(case, again.get(case.name)) for case in check.cases)


def _worse(checked: CaseResult, timed: CaseResult | None) -> CaseResult:
    """What is known of a case by both; one that was not run again, because another failed, is as it was checked."""
    if timed is None or timed.verdict is None or timed.verdict is Verdict.passed:
        return checked
    return timed


def _said(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


def _distinct(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    return first + tuple(item for item in second if item not in first)
