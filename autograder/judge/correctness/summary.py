"""The answer in a few sentences, for the student."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.contract import (
    CaseResult,
    Finding,
    FindingKind,
    GradeRequest,
    Mode,
    StudentError,
    Verdict,
    Visibility,
    Work,
)
from autograder.judge.correctness import clues
from autograder.judge.correctness.clues import CaseRun, Clue, Kind, Observation, Scene

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
GRADER_FAILED = "The grader failed. This is not your fault and costs you nothing; it will be graded again."

_HIDDEN_STEP = "Its sizes and values stay hidden: try your kernel on sizes of that kind."


def verdict_of(cases: Sequence[CaseResult]) -> Verdict:
    """The verdict of the first case that did not pass; `passed` if all did."""
    return next((case.verdict for case in cases if case.verdict not in {Verdict.passed, None}), None) or Verdict.passed


@dataclass(frozen=True)
class Headline:
    """What a student reads first.

    Attributes:
        case: the name of the public case that it is about; `""` where it is about none.
        section: the anchor of the handout's section that an author names; `""` where none is named.
    """

    text: str
    case: str = ""
    section: str = ""


def headline(cases: Sequence[CaseResult], request: GradeRequest, scene: Scene) -> Headline:
    """What was found, in the most telling public case, and what to do next.

    Args:
        scene: the public cases that were run.
    """
    failed = [case for case in cases if case.verdict not in {Verdict.passed, None}]
    if not failed:
        return Headline(_passed(cases, request))
    first = failed[0]
    if first.visibility is Visibility.hidden:
        name = NAMES[first.verdict or Verdict.grader_error]
        return Headline(f"{name} in a hidden case ({first.category}). {_HIDDEN_STEP}")
    found = clues.first_of(scene) if first.verdict in clues.TOLD else None
    if found is None:
        return Headline(_said(first), first.name)
    clue, told = found
    parts = (_said(told.about.result), told.says, _beside(scene, clue, told), told.step)
    return Headline(" ".join(filter(None, parts)), told.about.result.name, told.section)


def faulty_formulas(seen: Iterable[CaseRun]) -> tuple[Finding, ...]:
    """What staff should know of their misconceptions' formulas: those that could not be worked out."""
    faults = {name: error for one in seen for values in one.facts.outputs for name, error in values.faults.items()}
    if not faults:
        return ()
    names = ", ".join(f"“{name}”" for name in faults)
    text = f"Left out of the explanation, because its formula cannot be worked out: {names}. Mend misconceptions.toml."
    return (Finding(FindingKind.faulty_formula, text, faults),)


def _beside(scene: Scene, clue: Clue, told: Observation) -> str:
    """What the first clue of the other kind says; one that looks at values, of the same case.

    Beside a misconception none about another size than its own: the two would contradict each other.
    """
    if clue.kind is Kind.cases:
        one_case = dataclasses.replace(scene, seen=(told.about,), misconceptions=())
        other = clues.first_of(one_case, Kind.values)
    elif clue.name == clues.MISCONCEPTION:
        other = clues.first_of(scene, Kind.cases, sizes={"", told.size})
    else:
        other = clues.first_of(scene, Kind.cases)
    return other[1].says if other else ""


def _said(case: CaseResult) -> str:
    return f"{NAMES[case.verdict or Verdict.grader_error]} in case `{case.name}`. {case.message}"


def error_of(cases: Sequence[CaseResult]) -> StudentError | None:
    """The error of the first case that did not pass, as far as the student may see it."""
    failed = (case for case in cases if case.verdict not in {Verdict.passed, None})
    first = next(failed, None)
    return first.for_student().error if first else None


def _passed(cases: Sequence[CaseResult], request: GradeRequest) -> str:
    if request.work is Work.measure:
        return f"All {len(cases)} ranked cases were measured." if cases else "There was nothing to measure."
    if request.mode is Mode.run:
        return f"All {len(cases)} public cases passed. Submit to run the hidden ones."
    hidden = sum(case.visibility is Visibility.hidden for case in cases)
    return f"All {len(cases)} cases passed, {hidden} of them hidden." if hidden else f"All {len(cases)} cases passed."
