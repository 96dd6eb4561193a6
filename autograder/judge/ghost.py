"""Was it the student's kernel that did the work? Findings for staff, never a verdict.

The runner's record of launches and library operations is a claim; the ghost replay is not: in a fresh runner the
student's own kernels are replaced by ones that do nothing, and if the output is still right, something else did it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.assignment import Assignment
from autograder.contract import Finding, FindingKind, Launch
from autograder.judge.checking import Checked
from autograder.judge.conversation import MOST_NAMES
from autograder.judge.failure import clean

MAX_NAME = 120
MAX_GRID = 3
MOST_CALLS = 10**9
"""Where counting ends: a runner claims what it likes, and a sum of claims has to fit a message."""


@dataclass
class Record:
    """What the runner said it launched and called, over all public cases."""

    launches: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    def add(self, checked: Checked) -> None:
        """Add one case's record."""
        if checked.finished is None:
            return
        for launch in checked.finished.launches:
            key = (clean(launch.kernel, MAX_NAME), launch.grid[:MAX_GRID])
            self.launches[key] = _sum(self.launches.get(key, 0), launch.calls)
        for said, count in checked.finished.operations.items():
            name = clean(said, MAX_NAME)
            self.operations[name] = _sum(self.operations.get(name, 0), count)

    def as_launches(self) -> tuple[Launch, ...]:
        """The launches, most frequent kernels first."""
        ordered = sorted(self.launches.items(), key=lambda item: -item[1])[:MOST_NAMES]
        return tuple(Launch(kernel, grid, calls) for (kernel, grid), calls in ordered)


def _sum(counted: int, claimed: int) -> int:
    return min(counted + max(claimed, 0), MOST_CALLS)


def findings(
    assignment: Assignment, record: Record, replays: Mapping[str, Checked], *, complete: bool
) -> tuple[Finding, ...]:
    """What staff should look at; `replays` are the ghost's cases by name, all of them if `complete`."""
    found = []
    right = [name for name, checked in replays.items() if checked.passed]
    if not record.launches:
        summary = "No kernel of the student's was launched."
        found.append(Finding(FindingKind.no_kernel, summary, _evidence(record, right)))
    elif right:
        summary = "The output is still right when the student's kernels do nothing."
        found.append(Finding(FindingKind.decoration, summary, _evidence(record, right)))
    elif not complete:
        summary = "The replay without the student's kernels ended early, so it does not tell what did the work."
        found.append(Finding(FindingKind.no_replay, summary, _evidence(record, right)))
    if used := exercise_operations(assignment.library_operations, record.operations):
        summary = f"Library operations that do the exercise's work ran: {', '.join(used)}."
        found.append(Finding(FindingKind.library_call, summary, _evidence(record, right)))
    return tuple(found)


def exercise_operations(listed: Iterable[str], operations: Mapping[str, int]) -> list[str]:
    """Which of the operations that ran are listed, with or without their overload: `aten.add` lists `aten.add.out`."""
    names = set(listed)
    return sorted(name for name in operations if name in names or ".".join(name.split(".")[:2]) in names)


def _evidence(record: Record, right: Sequence[str]) -> dict[str, str]:
    launches = ", ".join(f"{kernel} × {calls}" for (kernel, _), calls in record.launches.items())
    operations = ", ".join(f"{name} × {count}" for name, count in sorted(record.operations.items()))
    return {
        "launches": launches or "none",
        "operations": operations or "none",
        "right without the kernels": ", ".join(right) or "none",
    }
