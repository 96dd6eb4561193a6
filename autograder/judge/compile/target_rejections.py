"""What no device would take, where no device ran it.

The CPU lane runs kernels in an interpreter or an emulator, which take more than a compiler for a device does, and more
shared memory than a device has. A submission that passed there is refused all the same if a call of every target's
cases would end with such an error: a GPU lane would refuse it too. What could not be compiled here for want of time,
memory, headers or a compiler is refused by nobody, and so is what one of the targets would take, or might: a rung with
a lane that it is not compiled for refuses nothing.

They are claims (`cross_compile`): whoever forges one passes on the CPU lane only.
"""

from __future__ import annotations

from collections.abc import Mapping

from autograder.assignment import Assignment
from autograder.contract import CaseResult, Lane, Verdict, Visibility
from autograder.judge.compile.cross_compile import TargetReport
from autograder.lanes import of_target

_WHY = "It runs here on the CPU, but it would not run on a GPU of this assignment."


def as_cases(assignment: Assignment, checked: Mapping[str, TargetReport]) -> tuple[CaseResult, ...]:
    """The cases of the first target that it would refuse, if every target that a lane has would refuse one."""
    graded_on = [target for target in assignment.compile_for if of_target(target)]
    refused = [checked[target].refused if target in checked else () for target in graded_on]
    if not refused or not all(refused) or not _is_for_all_lanes(assignment):
        return ()
    cases = {case.name: case for case in assignment.cases}
    return tuple(
        CaseResult(
            name=one.case,
            category=cases[one.case].category,
            group=cases[one.case].group,
            visibility=Visibility.public,
            ranked=False,
            verdict=Verdict.compile_error,
            message=f"{one.message} {_WHY}",
            error=one.error,
        )
        for one in refused[0]
    )


def _is_for_all_lanes(assignment: Assignment) -> bool:
    """Whether the rung is compiled for every device that it is graded on."""
    covered = {lane for target in assignment.compile_for for lane in of_target(target)}
    return all(lane in covered for lane in Lane if lane is not Lane.cpu and assignment.policy(lane))
