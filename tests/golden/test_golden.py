"""Every kernel in the assignments' folders, graded in the real sandbox, gets the verdict it must get.

Solutions, milestones and honest variants pass, starters run and are wrong, every file of `reference/*/submissions` gets
the verdict it is named for, every mutant is killed by the case that its author named, and what does the exercise with
a library call is shown to staff.

`ladder assignments verify` does all of it; here is left out what decides no verdict. Milestones and honest variants
are not timed; mutants that a public case kills do not meet the hidden ones; and what is launched is compiled for GPUs
only of the solutions, and where a requirement decides.
"""

from __future__ import annotations

import pytest
from rungs import SLUGS, folders

from autograder.assignment import load_assignment
from autograder.contract import Verdict, Work
from autograder.judge import References, compiled
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import Trial, trials
from autograder.verify.trials import Kind

TRIALS = [trial for slug in SLUGS for trial in trials.plan(*folders(slug))]


def _is_only_checked(trial: Trial) -> bool:
    """Those that pass and whose times nobody asks for. What must fail may do so only when calls are repeated."""
    return trial.verdict is Verdict.passed and trial.kind is not Kind.solution


def _is_compiled(trial: Trial) -> bool:
    requirements = load_assignment(folders(trial.slug)[0]).requirements
    return trial.kind is Kind.solution or any(requirement.group for requirement in requirements)


def _dies_in_public(trial: Trial) -> bool:
    """A mutant whose killer is a public case need not meet the hidden ones."""
    return trial.killed_by in {case.name for case in load_assignment(folders(trial.slug)[0]).cases}


def _name(trial: Trial) -> str:
    return f"{trial.slug}-{trial.kind}-{trial.name.replace(' ', '_')}"


@pytest.mark.parametrize("trial", TRIALS, ids=_name)
def test_a_kernel_gets_the_verdict_it_must_get(
    trial: Trial, sandbox: ProcessSandbox, references: References, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _is_compiled(trial):
        monkeypatch.setattr(compiled, "LANGUAGES", ())
    work = Work.check if _is_only_checked(trial) else Work.all
    outcome = trials.run(
        trial, *folders(trial.slug), sandbox, references, work=work, public_only=_dies_in_public(trial)
    )
    assert outcome.as_planned, outcome.deviation
