"""How a graded kernel is held against the verdict it must get."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from autograder import languages
from autograder.assignment import load_assignment
from autograder.contract import (
    CaseResult,
    Finding,
    FindingKind,
    GradeResult,
    Lane,
    Language,
    Verdict,
    Visibility,
)
from autograder.verify import Kind, Trial, trials

ROOT = Path(__file__).resolve().parents[3]
TRIAL = Trial("softmax", Kind.submission, "passed_x", Language.triton, "", Verdict.passed)


def _case(name: str, category: str, verdict: Verdict | None, visibility: Visibility) -> CaseResult:
    return CaseResult(name, category, "group", visibility, ranked=False, verdict=verdict, message="")


def _result(verdict: Verdict, *cases: CaseResult, findings: tuple[Finding, ...] = ()) -> GradeResult:
    return GradeResult(verdict, "It is so.", cases, findings=findings)


WRONG = _result(
    Verdict.wrong_answer,
    _case("one", "a single element", Verdict.passed, Visibility.public),
    _case("odd", "an odd size", Verdict.wrong_answer, Visibility.public),
    _case("primes 1: n=7", "primes", Verdict.runtime_error, Visibility.hidden),
    _case("primes 2: n=5", "primes", None, Visibility.hidden),
)


def test_the_verdict_that_was_planned_is_as_planned() -> None:
    outcome = trials.judged(TRIAL, _result(Verdict.passed), 1.0)
    assert outcome.as_planned
    assert outcome.failed == ()


def test_another_verdict_is_a_deviation() -> None:
    outcome = trials.judged(TRIAL, WRONG, 1.0)
    assert outcome.deviation == "got wrong_answer instead of passed: It is so."
    assert outcome.failed == ("odd", "primes")


@pytest.mark.parametrize("killer", ["odd", "primes"])
def test_a_mutant_is_killed_by_a_case_or_a_family(killer: str) -> None:
    mutant = dataclasses.replace(TRIAL, kind=Kind.mutant, verdict=Verdict.wrong_answer, killed_by=killer)
    assert trials.judged(mutant, WRONG, 1.0).as_planned


def test_a_mutant_that_another_case_killed_is_a_deviation() -> None:
    mutant = dataclasses.replace(TRIAL, kind=Kind.mutant, verdict=Verdict.wrong_answer, killed_by="one")
    assert trials.judged(mutant, WRONG, 1.0).deviation == "was not killed by 'one', but by odd, primes"


def test_a_library_call_has_to_be_shown_to_staff_and_an_honest_kernel_must_not() -> None:
    finding = Finding(FindingKind.library_call, "torch did it")
    shown = dataclasses.replace(TRIAL, shown=True)
    assert trials.judged(shown, _result(Verdict.passed, findings=(finding,)), 1.0).as_planned
    assert not trials.judged(shown, _result(Verdict.passed), 1.0).as_planned
    assert not trials.judged(TRIAL, _result(Verdict.passed, findings=(finding,)), 1.0).as_planned


@pytest.mark.parametrize(
    ("language", "starters", "milestones", "shown"),
    [
        (Language.triton, ["triton", "reading"], 3, "passed_library_call"),
        (Language.cuda, ["cuda"], 2, "passed_host_code"),
    ],
)
def test_the_plan_has_every_kernel_of_the_folders(
    language: Language, starters: list[str], milestones: int, shown: str
) -> None:
    both = trials.plan(ROOT / "assignments" / "softmax", ROOT / "reference" / "softmax")
    plan = [trial for trial in both if trial.language is language]
    kinds = [trial.kind for trial in plan]
    files = languages.files_in(ROOT / "reference" / "softmax" / "submissions", language)
    assert (kinds.count(Kind.solution), kinds.count(Kind.milestone)) == (1, milestones)
    assert [trial.name for trial in plan if trial.kind is Kind.starter] == starters
    assert all(trial.verdict is Verdict.wrong_answer for trial in plan if trial.kind is Kind.starter)
    assert kinds.count(Kind.submission) == len(files)
    assert all(trial.verdict is Verdict.passed for trial in plan if trial.kind in {Kind.solution, Kind.milestone})
    assert [trial.name for trial in plan if trial.shown] == [shown]


def test_given_kernels_are_right() -> None:
    plan = trials.plan(ROOT / "assignments" / "profile_repair", ROOT / "reference" / "profile_repair")
    given = [trial for trial in plan if trial.kind is Kind.given]
    assert [(trial.name, trial.language) for trial in given] == [
        ("c", Language.triton), ("a", Language.cuda), ("b", Language.cuda), ("d", Language.cuda),
    ]  # fmt: skip
    assert all(trial.verdict is Verdict.passed for trial in given)


def test_kernels_are_planned_for_the_lanes_that_run_them() -> None:
    folders = ROOT / "assignments" / "softmax", ROOT / "reference" / "softmax"
    for lane in (Lane.cpu, Lane.h200):
        planned = {trial.language for trial in trials.plan(*folders, lane=lane)}
        offered = load_assignment(folders[0]).languages
        assert planned == {language for language in offered if languages.of(language).loader(lane)}
        assert (len(planned) < len(offered)) is (lane is Lane.cpu)


def test_a_mutant_is_the_staff_kernel_with_one_edit() -> None:
    plan = trials.plan(ROOT / "assignments" / "softmax", ROOT / "reference" / "softmax")
    solution = next(trial.source for trial in plan if trial.kind is Kind.solution)
    mutants = [trial for trial in plan if trial.kind is Kind.mutant]
    assert mutants
    assert all(trial.source != solution and trial.killed_by for trial in mutants)


def test_a_mutant_has_to_be_told_as_its_misconception() -> None:
    mutant = dataclasses.replace(TRIAL, kind=Kind.mutant, verdict=Verdict.wrong_answer, says="It is so.")
    assert trials.judged(mutant, WRONG, 1.0).as_planned
    other = trials.judged(dataclasses.replace(mutant, says="It is otherwise."), WRONG, 1.0)
    assert other.deviation == "is not told as its misconception, but: It is so."


def test_a_formula_with_a_fault_is_a_deviation() -> None:
    mutant = dataclasses.replace(TRIAL, kind=Kind.mutant, verdict=Verdict.wrong_answer, says="It is so.")
    finding = Finding(FindingKind.faulty_formula, "Its formula cannot be worked out.")
    outcome = trials.judged(mutant, dataclasses.replace(WRONG, findings=(finding,)), 1.0)
    assert outcome.deviation.startswith("Its formula cannot be worked out.")


def test_the_rungs_with_misconceptions_have_mutants_that_are_told_as_them() -> None:
    told = {
        slug: [trial for trial in _planned(slug) if trial.says] for slug in ("softmax", "reduction", "residual_norm")
    }
    assert all(len(found) >= 3 for found in told.values())


def _planned(slug: str) -> tuple[Trial, ...]:
    return trials.plan(ROOT / "assignments" / slug, ROOT / "reference" / slug)
