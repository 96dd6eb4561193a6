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
from _pytest.mark import ParameterSet

from autograder.assignment import Assignment, load_assignment
from autograder.contract import Lane, Verdict, Work
from autograder.judge import References, grading
from autograder.judge.compile import cross_compile
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import Outcome, Trial, trials
from autograder.verify.trials import Kind
from tests.golden.rungs import SLUGS, folders
from tests.suite import policy

TRIALS = [trial for slug in SLUGS for trial in trials.plan(*folders(slug))]
MOST_IN_ALL_LANGUAGES = 40
"""Rungs times languages, up to which `make test` grades each rung's kernels in all of its languages."""
QUICK_MUTANTS = 2


def _is_only_checked(trial: Trial) -> bool:
    """Those that pass and whose times nobody asks for. What must fail may do so only when calls are repeated."""
    return trial.verdict is Verdict.passed and trial.kind is not Kind.solution


def _quick() -> set[int]:
    """The places in `TRIALS` of what `make test` grades: solutions, starters, and two mutants of each rung.

    In all languages while there are few of them; else in one a rung, which is another at every commit.
    """
    pairs = {(trial.slug, trial.language): None for trial in TRIALS if trial.kind is Kind.solution}
    if len(pairs) > MOST_IN_ALL_LANGUAGES:
        of_rung = {slug: [language for each, language in pairs if each == slug] for slug in SLUGS}
        turn = policy.commit_number()
        pairs = {(slug, known[turn % len(known)]): None for slug, known in of_rung.items()}
    chosen = [place for place, trial in enumerate(TRIALS) if (trial.slug, trial.language) in pairs]
    whole = [place for place in chosen if TRIALS[place].kind in {Kind.solution, Kind.starter}]
    return {*whole, *(place for slug in SLUGS for place in _mutants(chosen, slug)[:QUICK_MUTANTS])}


def _mutants(chosen: list[int], slug: str) -> list[int]:
    """Those of a rung, one of each language first."""
    mutants = [place for place in chosen if TRIALS[place].kind is Kind.mutant and TRIALS[place].slug == slug]
    first = {TRIALS[place].language: place for place in reversed(mutants)}.values()
    return [*first, *(place for place in mutants if place not in first)]


def _parameters() -> list[ParameterSet]:
    quick = _quick()
    return [
        pytest.param(trial, id=_name(trial), marks=pytest.mark.quick if place in quick else ())
        for place, trial in enumerate(TRIALS)
    ]


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

    Alone the case is met in the emulator's first order of threads, and by a runner that has made no call before. What
    has to be told as a misconception needs the other cases that it names.
    """
    assignment = _with_its_killer_only(trial)
    if assignment is None or trial.says:
        return None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grading, "load_assignment", lambda _folder: assignment)
        patched.setattr(grading, "load_misconceptions", lambda _folder, _assignment: ())
        outcome = trials.run(trial, *folders(trial.slug), sandbox, references, public_only=True)
    return outcome if outcome.as_planned else None


def _outcome(trial: Trial, sandbox: ProcessSandbox, references: References) -> Outcome:
    if killed := _killed_at_once(trial, sandbox, references):
        return killed
    work = Work.check if _is_only_checked(trial) else Work.all
    public_only = _with_its_killer_only(trial) is not None
    return trials.run(trial, *folders(trial.slug), sandbox, references, work=work, public_only=public_only)


@pytest.mark.parametrize("trial", _parameters())
def test_a_kernel_gets_the_verdict_it_must_get(
    trial: Trial, sandbox: ProcessSandbox, references: References, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _is_compiled(trial):
        monkeypatch.setattr(cross_compile, "is_compiled", lambda _: False)
    outcome = _outcome(trial, sandbox, references)
    assert outcome.as_planned, outcome.deviation
