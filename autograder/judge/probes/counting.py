"""What calls of public cases do, counted where there is no GPU, and held against what the rung asks of them.

Counters are claims of the runner's: `doubted` says when a person looks before they give points.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from autograder import languages
from autograder.assignment import Assignment, Requirement
from autograder.contract import Counted, GradeRequest, Lane, RequirementResult
from autograder.counters import capped, figures_of
from autograder.judge.compile.requirements import COMPARE, UNITS, rule_of
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.protocol.runner_client import RunnerClient

_SET_UP = frozenset({
    "empty", "empty_like", "empty_strided", "new_empty", "zeros", "zeros_like", "new_zeros", "zero_", "fill_", "full",
    "view", "_unsafe_view", "as_strided", "detach", "alias", "slice", "select", "unsqueeze", "squeeze", "expand",
    "unbind", "split", "view_as_real",
})  # fmt: skip
"""Operations of torch that make, fill or look at tensors, and move nothing that an exercise moves."""

_ALL = 100
"""Per cent of what the exercise cannot do without moving."""


def requirements_of(assignment: Assignment, request: GradeRequest) -> tuple[Requirement, ...]:
    """Those that counting can tell of."""
    by = languages.of(request.language).counted_by
    if request.lane is not Lane.cpu or not by:
        return ()
    names = {case.name for case in assignment.cases_for(request.lane)}
    return tuple(one for one in assignment.requirements if one.target == by and one.case in names)


def count(
    assignment: Assignment, checker: Checker, runner: RunnerClient, wanted: Sequence[Requirement]
) -> Iterator[tuple[Counted, CallResult]]:
    """What one call of each case that they name did; the runner has called it before, and passed."""
    for name, by in {(one.case, one.target): None for one in wanted}:
        case = next(case for case in assignment.cases if case.name == name)
        checked = checker.counted(runner, case)
        counters = capped(checked.finished.counters) if checked.finished else {}
        if checked.passed and counters:
            figures = figures_of(counters, assignment.cost_of(case)[1])
            yield Counted(name, by, counters, figures), checked
        else:
            message = f"The call that was counted did not pass: {checked.message}"
            yield Counted(name, by, message=message if not checked.passed else "Nothing was counted."), checked
        if checked.ended:
            return


def evaluate(wanted: Sequence[Requirement], counted: Sequence[Counted]) -> tuple[RequirementResult, ...]:
    """Every requirement on what was counted; those of cases that were not counted could not be told."""
    found = {one.case: one for one in counted}
    return tuple(_one(requirement, found.get(requirement.case)) for requirement in wanted)


def _one(requirement: Requirement, counted: Counted | None) -> RequirementResult:
    met, message = None, (counted.message if counted else "") or "Nothing was counted."
    if counted is not None and not requirement.bounds.keys() - counted.figures.keys():
        kept = [COMPARE[sign](counted.figures[name], bound) for name, (sign, bound) in requirement.bounds.items()]
        met = all(kept)
        figures = ((name, counted.figures[name]) for name in requirement.bounds)
        said = ", ".join(f"{name.replace('_', ' ')} {value}{UNITS.get(name, '')}" for name, value in figures)
        message = f"Counted: {said}."
    return RequirementResult(
        requirement.name, requirement.about, requirement.target, rule_of(requirement), met, message,
        points=requirement.points,
    )  # fmt: skip


def doubted(request: GradeRequest, counted: Sequence[tuple[Counted, CallResult]]) -> tuple[Counted, ...]:
    """What was counted, with why it may not be what the submission does."""
    reaches = languages.of(request.language).reaches(request.source) if counted else ""
    known = f"The source could reach what counts: {reaches}." if reaches else ""
    return tuple(dataclasses.replace(one, doubt=known or _doubt(one, checked)) for one, checked in counted)


def _doubt(counted: Counted, checked: CallResult) -> str:
    if counted.figures.get("traffic", _ALL) < _ALL:
        return f"{counted.figures['traffic']} % of the bytes that nobody can do without were moved."
    operations = checked.finished.operations if checked.finished else {}
    other = sorted(name for name in operations if name.rpartition(".")[2] not in _SET_UP)
    return f"What torch does is not counted: {', '.join(other[:5])}." if other else ""
