"""Every kernel in the assignments' folders, graded in the real sandbox, gets the verdict it must get.

Solutions, milestones and honest variants pass, starters run and are wrong, every file of `reference/*/submissions` gets
the verdict it is named for, every mutant is killed by the case that its author named, and what does the exercise with
a library call is shown to staff.

`ladder assignments verify` does all of it; here is left out what decides no verdict. Milestones and honest variants
are not timed; mutants that a public case kills meet that one case; and what is launched is compiled for GPUs only of
solutions, and where a requirement decides: compiling takes most of the time.
"""

from __future__ import annotations

import dataclasses

import pytest
from rungs import SLUGS, folders

from autograder.assignment import Assignment, load_assignment
from autograder.contract import Lane, Verdict, Work
from autograder.judge import References, compiled, grading
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import Outcome, Trial, trials
from autograder.verify.trials import Kind

TRIALS = [trial for slug in SLUGS for trial in trials.plan(*folders(slug))]


def _is_only_checked(trial: Trial) -> bool:
    """Those that pass and whose times nobody asks for. What must fail may do so only when calls are repeated."""
    return trial.verdict is Verdict.passed and trial.kind is not Kind.solution


def _is_compiled(trial: Trial) -> bool:
    requirements = load_assignment(folders(trial.slug)[0]).requirements
    decides = trial.verdict is Verdict.passed and any(requirement.group for requirement in requirements)
    return trial.kind is Kind.solution or decides


def _with_its_killer_only(trial: Trial) -> Assignment | None:
    """The rung with the one public case that has to kill this mutant; `None` if no public case has to."""
    assignment = load_assignment(folders(trial.slug)[0])
    killers = tuple(case for case in assignment.cases if case.name == trial.killed_by)
    # Those of other lanes are not run here, and what is compiled for GPUs is compiled from them.
    elsewhere = tuple(case for case in assignment.cases if case not in assignment.cases_for(Lane.cpu))
    return dataclasses.replace(assignment, cases=killers + elsewhere) if killers else None


def _name(trial: Trial) -> str:
    return f"{trial.slug}-{trial.kind}-{trial.name.replace(' ', '_')}"


def _killed_at_once(trial: Trial, sandbox: ProcessSandbox, references: References) -> Outcome | None:
    """How a mutant fares in the case that has to kill it; `None` if no public case has to, or it takes more than that.

    Alone the case is met in the emulator's first order of threads, and by a runner that has made no call before.
    """
    assignment = _with_its_killer_only(trial)
    if assignment is None:
        return None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grading, "load_assignment", lambda _folder: assignment)
        outcome = trials.run(trial, *folders(trial.slug), sandbox, references, public_only=True)
    return outcome if outcome.as_planned else None


def _outcome(trial: Trial, sandbox: ProcessSandbox, references: References) -> Outcome:
    if killed := _killed_at_once(trial, sandbox, references):
        return killed
    work = Work.check if _is_only_checked(trial) else Work.all
    public_only = _with_its_killer_only(trial) is not None
    return trials.run(trial, *folders(trial.slug), sandbox, references, work=work, public_only=public_only)


@pytest.mark.parametrize("trial", TRIALS, ids=_name)
def test_a_kernel_gets_the_verdict_it_must_get(
    trial: Trial, sandbox: ProcessSandbox, references: References, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _is_compiled(trial):
        monkeypatch.setattr(compiled, "LANGUAGES", ())
    outcome = _outcome(trial, sandbox, references)
    assert outcome.as_planned, outcome.deviation
