"""Is an assignment complete, and does it tell right from wrong? What its author asks before anybody else does.

    drawing.check    runs problem.py: whether it draws every distribution that is named
    gaps.find        reads the folders: what is missing, such as a section of the handout or mutants; what leaks
    shortcuts.find   runs problem.py: what passes and should not, such as a lower precision, zeros, the last answer
    trials.plan      reads the folders: every kernel with the verdict it must get
    trials.run       grades one of them in the sandbox

`verify` does all of it. Functions return dataclasses; who calls them prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.judge import References
from autograder.sandbox import Sandbox
from autograder.verify import drawing, gaps, shortcuts, trials
from autograder.verify.gaps import Gap
from autograder.verify.trials import Kind, Outcome, Trial

__all__ = ["Gap", "Kind", "Outcome", "Report", "Trial", "drawing", "gaps", "shortcuts", "trials", "verify"]


@dataclass(frozen=True)
class Report:
    """What `verify` found about one assignment."""

    slug: str
    gaps: tuple[Gap, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def complete(self) -> bool:
        """Nothing is missing and every kernel got the verdict it must get."""
        return not self.gaps and all(outcome.as_planned for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        """How long the gradings took."""
        return sum(outcome.seconds for outcome in self.outcomes)


def verify(
    assignment_folder: Path,
    reference_folder: Path,
    *,
    sandbox: Sandbox,
    emit: Callable[[Outcome], None] = lambda _: None,
) -> Report:
    """Check one assignment; `emit` gets every graded kernel as it is done.

    Raises:
        ManifestError: one of its files cannot be read, or names a distribution that there is not.
        HarnessError: its problem.py does not fit its manifest.
    """
    drawing.check(assignment_folder, reference_folder)
    missing = (*gaps.find(assignment_folder, reference_folder), *shortcuts.find(assignment_folder))
    outcomes: list[Outcome] = []
    references = References(sandbox)
    try:
        for trial in trials.plan(assignment_folder, reference_folder):
            outcomes.append(trials.run(trial, assignment_folder, reference_folder, sandbox, references))
            emit(outcomes[-1])
    finally:
        references.close()
    return Report(assignment_folder.name, missing, tuple(outcomes))
