"""Whether the kernels, as compiled, have the structure that a rung asks for.

They are claims (`cross_compile`), so a requirement that gives points can be forged by code that is written to deceive;
 `docs/compile_checks.md` says what stands against it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from autograder.assignment import Assignment, Requirement, RunRequirement
from autograder.contract import CaseResult, CompiledKernel, RequirementResult, Verdict, Visibility
from autograder.counters import COUNTED_BY
from autograder.errors import HarnessError
from autograder.judge.compile.cross_compile import REFUSED, TargetReport

COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
AT_LEAST = (">", ">=")
"""Comparisons that one launch has to satisfy; the others hold for every launch."""


def evaluate(assignment: Assignment, checked: Mapping[str, TargetReport]) -> tuple[RequirementResult, ...]:
    """Every requirement of the assignment, on what was compiled for its target.

    Raises:
        HarnessError: a requirement that counts could not be looked at through a fault of ours.
    """
    structural = [one for one in assignment.requirements if one.target not in COUNTED_BY]
    return tuple(_one(requirement, checked.get(requirement.target)) for requirement in structural)


def as_cases(assignment: Assignment, results: Sequence[RequirementResult] | None) -> tuple[CaseResult, ...]:
    """The requirements that belong to a group, as cases of it; not run where there are no results."""
    if results is None:
        counted = [one for one in assignment.requirements if one.group]
        return tuple(_case(one.name, one.about, one.group, None, "This case was not run.") for one in counted)
    return tuple(_case(one.name, one.about, one.group, _verdict(one), one.message) for one in results if one.group)


def _verdict(result: RequirementResult) -> Verdict | None:
    if result.met is None:
        return None
    if result.met:
        return Verdict.passed
    return Verdict.compile_error if result.message.startswith(REFUSED) else Verdict.rule_violation


def _case(name: str, about: str, group: str, verdict: Verdict | None, message: str) -> CaseResult:
    return CaseResult(
        name=name, category=about, group=group, visibility=Visibility.public, ranked=False, verdict=verdict,
        message=message,
    )  # fmt: skip


def _one(requirement: Requirement, checked: TargetReport | None) -> RequirementResult:
    if checked is not None and checked.infrastructure_fault and requirement.group:
        raise HarnessError(f"the requirement {requirement.name!r} could not be looked at: nothing was compiled")
    met, message = _found(requirement, checked)
    # Without a group it is shown and fails nobody: no submission could have met it on this node.
    group = "" if checked is not None and checked.lacking else requirement.group
    return RequirementResult(
        requirement.name, requirement.about, requirement.target, rule_of(requirement), met, message, group
    )


UNITS = {"traffic": " %"}
"""Of what a requirement compares, where it is no count."""


def rule_of(requirement: Requirement | RunRequirement) -> str:
    """`wgmma > 0, spills == 0`."""
    bounds = requirement.bounds.items()
    return ", ".join(f"{name} {sign} {number}{UNITS.get(name, '')}" for name, (sign, number) in bounds)


def _found(requirement: Requirement, checked: TargetReport | None) -> tuple[bool | None, str]:
    launches = _launches(requirement.case, checked) if checked is not None else {}
    if checked is None or not launches:
        return None, (checked.shown.message if checked else "") or "No launch was seen."
    every = {name: bound for name, bound in requirement.bounds.items() if bound[0] not in AT_LEAST}
    for kernels in launches.values():
        if not any(_keeps(kernel, every) for kernel in kernels):
            return False, _short_of(kernels[0], every)
    best = [kernel for kernels in launches.values() for kernel in kernels if _keeps(kernel, requirement.bounds)]
    if best:
        # A launch that was not compiled may break what has to hold for every one.
        return (True, _told(best[0], requirement)) if checked.whole or not every else (None, _unsure(checked))
    if not checked.whole:
        return None, _unsure(checked)
    return False, _short_of(next(iter(launches.values()))[0], requirement.bounds)


def _launches(case: str, checked: TargetReport) -> dict[int, list[CompiledKernel]]:
    """The candidates of each launch of a case."""
    found: dict[int, list[CompiledKernel]] = {}
    for kernel, uses in zip(checked.shown.kernels, checked.uses, strict=True):
        for number, launch in uses:
            if checked.cases[number] == case:
                found.setdefault(launch, []).append(kernel)
    return found


def _keeps(kernel: CompiledKernel, bounds: Mapping[str, tuple[str, int]]) -> bool:
    return not kernel.message and all(
        COMPARE[sign](getattr(kernel, name), number) for name, (sign, number) in bounds.items()
    )


def _told(kernel: CompiledKernel, requirement: Requirement) -> str:
    numbers = ", ".join(f"{name} {getattr(kernel, name)}" for name in requirement.bounds)
    return f"`{kernel.kernel}` ({kernel.config}) has {numbers}."


def _short_of(kernel: CompiledKernel, bounds: Mapping[str, tuple[str, int]]) -> str:
    if kernel.message:
        return kernel.message
    missed = [
        f"{name} {getattr(kernel, name)} where {sign} {number} is required"
        for name, (sign, number) in bounds.items()
        if not COMPARE[sign](getattr(kernel, name), number)
    ]
    return f"`{kernel.kernel}` ({kernel.config}) has {', '.join(missed)}."


def _unsure(checked: TargetReport) -> str:
    return checked.shown.message or "Some launches were not compiled."
