"""Warm references: used again, and ended when they are gone, old, or nobody knows what they are in the middle of."""

from __future__ import annotations

import pytest

from autograder.contract import Verdict
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.timing import references
from autograder.judge.timing.paired_timing import PairedTimer
from tests.autograder.grading_bench import GOOD, Bench


@pytest.fixture(autouse=True)
def anew(bench: Bench) -> None:
    bench.references.close()


def kept(bench: Bench) -> list[RunnerClient]:
    return [one.runner for one in bench.references._kept.values()]


def test_a_reference_serves_the_next_attempt_too(bench: Bench) -> None:
    bench.grade(GOOD)
    first = kept(bench)
    bench.grade(GOOD)
    assert len(first) == 1
    assert kept(bench) == first


def test_a_reference_that_is_gone_is_replaced(bench: Bench) -> None:
    bench.grade(GOOD)
    first = kept(bench)
    first[0].close()
    assert bench.grade(GOOD).verdict is Verdict.passed
    assert kept(bench) != first


def test_a_reference_is_replaced_after_so_many_attempts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MAX_ATTEMPTS", 2)
    seen: list[RunnerClient] = []
    for _ in range(3):
        assert bench.grade(GOOD).verdict is Verdict.passed
        seen += kept(bench)
    assert seen[0] is seen[1]
    assert seen[1] is not seen[2]
    assert not seen[0].alive()


def test_a_reference_does_not_outlive_a_failure_of_ours(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.grade(GOOD)
    first = kept(bench)[0]

    def failing(*_: object) -> None:
        raise OSError("the judge's own")

    with monkeypatch.context() as patched:
        patched.setattr(PairedTimer, "case", failing)
        assert bench.grade(GOOD).verdict is Verdict.grader_error
    assert kept(bench) == []
    assert not first.alive()
    assert bench.grade(GOOD).verdict is Verdict.passed


def test_a_submission_that_fails_costs_no_reference(bench: Bench) -> None:
    bench.grade(GOOD)
    first = kept(bench)
    lazy = GOOD.replace("import", "calls = []\nimport", 1)
    lazy = lazy.replace(
        "    for row in range(m):", "    calls.append(n)\n    for row in range(m * (len(calls) < 9)):", 1
    )
    assert bench.grade(lazy).verdict is not Verdict.grader_error
    assert kept(bench) == first
