"""*Break the judge*: no honest kernel passes, and whoever gets past the judge does."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.assignment import challenges, load_assignment, slugs
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.judge.correctness import checker
from autograder.sandbox.process import ProcessSandbox
from autograder.scores import score

ROOT = Path(__file__).parents[2]
SLUG = "break_the_judge"
PUBLIC, STAFF = ROOT / "assignments" / SLUG, ROOT / "reference" / SLUG
STARTERS = {Language.triton: "triton.py", Language.cuda: "cuda.cu"}


def graded(sandbox: ProcessSandbox, language: Language, mode: Mode = Mode.submission) -> GradeResult:
    source = (PUBLIC / "starters" / STARTERS[language]).read_text(encoding="utf-8")
    request = GradeRequest(SLUG, "", language, Lane.cpu, mode, source, STARTERS[language])
    return grade(request, assignment_folder=PUBLIC, reference_folder=STAFF, sandbox=sandbox)


def points(result: GradeResult) -> float:
    return score(load_assignment(PUBLIC), result, Lane.cpu).correctness_points


@pytest.mark.parametrize("language", list(STARTERS))
@pytest.mark.quick
def test_an_honest_kernel_runs_fails_what_is_sealed_and_earns_nothing(
    sandbox: ProcessSandbox, language: Language
) -> None:
    assert graded(sandbox, language, Mode.run).verdict is Verdict.passed
    result = graded(sandbox, language)
    assert result.verdict is Verdict.wrong_answer
    assert {case.verdict for case in result.cases if case.name.startswith("open")} == {Verdict.passed}
    assert points(result) == 0


def test_whoever_has_the_judge_compare_other_memory_passes_and_has_all_points(
    sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = checker.compare
    monkeypatch.setattr(checker, "compare", lambda got, truth, *rules: compare(truth.to(got.dtype), truth, *rules))
    result = graded(sandbox, Language.triton)
    assert (result.verdict, points(result)) == (Verdict.passed, 100)


@pytest.mark.quick
def test_it_is_no_rung() -> None:
    assert challenges(ROOT / "assignments") == (SLUG,)
    assert SLUG not in slugs(ROOT / "assignments")
