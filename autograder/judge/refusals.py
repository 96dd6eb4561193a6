"""What no device would take, where no device ran it.

The CPU lane runs kernels in an interpreter or an emulator, which take more than a compiler for a device does, and more
shared memory and threads than a device has. A submission that passed there is refused all the same if a call of every
target's cases would end with such an error: a GPU lane would refuse it too. What could not be compiled here for want of
time, memory, headers or a compiler is refused by nobody, and so is what one of the targets would take.

They are claims (`autograder.judge.compiled`): whoever forges one passes on the CPU lane only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autograder.assignment import Assignment
from autograder.contract import CaseResult, CompiledKernel, Verdict, Visibility
from autograder.judge.compiled import REFUSED, Checked

_WHY = "It runs here, on the CPU, and no GPU that this rung is for would take it: on {lanes} this case fails."


def as_cases(assignment: Assignment, checked: Mapping[str, Checked]) -> tuple[CaseResult, ...]:
    """The cases of the first target that it would refuse, if every target of the rung's would refuse one."""
    refused = [dict(_refused(checked[target])) if target in checked else {} for target in assignment.compile_for]
    if not refused or not all(refused):
        return ()
    cases = {case.name: case for case in assignment.cases}
    return tuple(
        CaseResult(
            name=name,
            category=cases[name].category,
            group=cases[name].group,
            visibility=Visibility.public,
            ranked=False,
            verdict=Verdict.compile_error,
            message=f"{kernel.message} {_WHY.format(lanes=' and '.join(assignment.compile_for))}",
            error=kernel.error,
        )
        for name, kernel in refused[0].items()
    )


def _refused(checked: Checked) -> Iterator[tuple[str, CompiledKernel]]:
    """Names of cases whose call would fail, and the first kernel that it would fail for."""
    for number in checked.refused:
        used = zip(checked.shown.kernels, checked.uses, strict=True)
        kernels = [kernel for kernel, uses in used if any(case == number for case, _ in uses)]
        fault = next((kernel for kernel in kernels if kernel.message.startswith(REFUSED)), None)
        if fault is not None:
            yield checked.cases[number], fault
