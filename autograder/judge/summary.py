"""The answer in one sentence or two, for the student."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.contract import CaseResult, GradeRequest, Mode, StudentError, Verdict, Visibility, Work

NAMES: dict[Verdict, str] = {
    Verdict.passed: "Passed",
    Verdict.wrong_answer: "Wrong answer",
    Verdict.compile_error: "Compile error",
    Verdict.runtime_error: "Runtime error",
    Verdict.illegal_access: "Illegal memory access",
    Verdict.time_limit: "Time limit reached",
    Verdict.out_of_memory: "Out of memory",
    Verdict.output_limit: "Output limit reached",
    Verdict.nondeterministic: "Nondeterministic",
    Verdict.rule_violation: "Rule violation",
    Verdict.grader_error: "Grader error",
}
OURS = "The grader failed. This is not your fault and costs you nothing; it will be graded again."

_HIDDEN_STEP = "Its sizes and values stay hidden: try your kernel on sizes of that kind."


def verdict_of(cases: Sequence[CaseResult]) -> Verdict:
    """The verdict of the first case that did not pass; `passed` if all did."""
    return next((case.verdict for case in cases if case.verdict not in {Verdict.passed, None}), None) or Verdict.passed


def explanation(cases: Sequence[CaseResult], request: GradeRequest) -> str:
    """What was found, in which case, and what to do next."""
    failed = [case for case in cases if case.verdict not in {Verdict.passed, None}]
    if not failed:
        return _passed(cases, request)
    first = failed[0]
    name = NAMES[first.verdict or Verdict.grader_error]
    if first.visibility is Visibility.hidden:
        return f"{name} in a hidden case ({first.category}). {_HIDDEN_STEP}"
    return f"{name} in case `{first.name}`. {first.message}"


def error_of(cases: Sequence[CaseResult]) -> StudentError | None:
    """The error of the first case that did not pass, as far as the student may see it."""
    failed = (case for case in cases if case.verdict not in {Verdict.passed, None})
    first = next(failed, None)
    return first.for_student().error if first else None


def _passed(cases: Sequence[CaseResult], request: GradeRequest) -> str:
    if request.work is Work.measure:
        return f"All {len(cases)} ranked cases were measured." if cases else "There was nothing to measure."
    if request.mode is Mode.run:
        return f"All {len(cases)} public cases passed. Submit to meet the hidden ones."
    hidden = sum(case.visibility is Visibility.hidden for case in cases)
    return f"All {len(cases)} cases passed, {hidden} of them hidden." if hidden else f"All {len(cases)} cases passed."
