"""Every kernel in the assignments' folders, graded in the real sandbox, gets the verdict it must get.

Solutions, milestones and honest variants pass, starters run and are wrong, every file of `reference/*/submissions` gets
the verdict it is named for, every mutant is killed by the case that its author named, and what does the exercise with
a library call is shown to staff. Milestones and honest variants are only checked here: their times are those of
`ladder assignments verify`.
"""

from __future__ import annotations

import pytest
from rungs import SLUGS, folders

from autograder.contract import Verdict, Work
from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import Trial, trials
from autograder.verify.trials import Kind

TRIALS = [trial for slug in SLUGS for trial in trials.plan(*folders(slug))]


def _is_only_checked(trial: Trial) -> bool:
    """Those that pass and whose times nobody asks for. What must fail may do so only when calls are repeated."""
    return trial.verdict is Verdict.passed and trial.kind is not Kind.solution


def _name(trial: Trial) -> str:
    return f"{trial.slug}-{trial.kind}-{trial.name.replace(' ', '_')}"


@pytest.mark.parametrize("trial", TRIALS, ids=_name)
def test_a_kernel_gets_the_verdict_it_must_get(trial: Trial, sandbox: ProcessSandbox, references: References) -> None:
    work = Work.check if _is_only_checked(trial) else Work.all
    outcome = trials.run(trial, *folders(trial.slug), sandbox, references, work=work)
    assert outcome.as_planned, outcome.deviation
