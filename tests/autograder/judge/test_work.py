"""A grading in two halves: together they find what the whole finds, and each does its own part only."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder import codec
from autograder.assignment import Case
from autograder.contract import CaseResult, FindingKind, GradeResult, Mode, Phase, Verdict, Visibility, Work
from autograder.judge.correctness import explain
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.grading import Grading
from autograder.judge.probes.work_probe import WorkProbe
from autograder.judge.protocol.buffers import SharedTensor, Snapshot
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.protocol import Load
from autograder.sandbox import Runner
from tests.autograder.grading_bench import GOOD, Bench, body, edited, kernel

WRONG = kernel(after="if m == 32: out[30:] = -7")
HIDDEN_WRONG = kernel(after="if n not in (5, 33, 128): out[0, 0] = 9")
SLOW = kernel(before="time.sleep(0.05)")
LAZY = kernel(before="calls[m, n] = calls.get((m, n), 0) + 1\nif calls[m, n] > 2: return", top="calls = {}")
SPOILS_TIMED_CALLS = kernel(
    before="seen.append((m, n))", after="if len(seen) > 3 and set(seen) == {(64, 128)}: out[0] = 3", top="seen = []"
)


def phases(result: GradeResult) -> list[Phase]:
    return [entry.phase for entry in result.phases]


def told(cases: tuple[CaseResult, ...]) -> list[tuple[str, Verdict | None]]:
    """Hidden cases are drawn for each attempt: their category is what two attempts have in common."""
    hidden = Visibility.hidden
    return [(case.category if case.visibility is hidden else case.name, case.verdict) for case in cases]


def united(checked: GradeResult, measured: GradeResult | None) -> tuple[Verdict, list[tuple[str, Verdict | None]]]:
    """Verdict and cases of two halves: a timed call that failed replaces what the check had shown."""
    failed = {case.name: case for case in measured.cases if case.verdict is not Verdict.passed} if measured else {}
    cases = tuple(failed.get(case.name, case) for case in checked.cases)
    return (measured.verdict if failed and measured else checked.verdict), told(cases)


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    "source", [GOOD, WRONG, HIDDEN_WRONG, SLOW, SPOILS_TIMED_CALLS, "x = 1\n", body("os._exit(0)")]
)
def test_the_halves_find_together_what_the_whole_finds(bench: Bench, source: str) -> None:
    whole = bench.grade(source)
    checked = bench.grade(source, work=Work.check)
    measured = bench.grade(source, work=Work.measure) if checked.verdict is Verdict.passed else None
    assert united(checked, measured) == (whole.verdict, told(whole.cases))
    names = [found.case for found in measured.measurements] if measured else []
    assert names == [found.case for found in whole.measurements]
    assert checked.measurements == ()


def test_a_check_meets_the_hidden_cases_and_looks_for_the_kernel_and_times_nothing(bench: Bench) -> None:
    result = bench.grade(GOOD, work=Work.check)
    assert [case.verdict for case in result.cases] == [Verdict.passed] * 5
    assert phases(result) == [
        Phase.preparing, Phase.compiling, Phase.checking, Phase.profiling, Phase.reporting
    ]  # fmt: skip
    assert FindingKind.no_kernel in {finding.kind for finding in result.findings}
    assert result.measurements == ()
    assert result.explanation == "All 5 cases passed, 2 of them hidden."


def test_all_cases_are_said_to_have_passed_before_anybody_waits_for_the_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU's lane replay and tracer are at work until later, and a student waits for the cases."""
    heard: list[list[Phase]] = []
    real = WorkProbe.wait

    def wait(self: WorkProbe) -> None:
        heard.append([event.phase.phase for event in bench.events if event.phase])
        real(self)

    monkeypatch.setattr(WorkProbe, "wait", wait)
    assert bench.grade(GOOD, work=Work.check).verdict is Verdict.passed
    assert heard == [[Phase.preparing, Phase.compiling, Phase.checking, Phase.profiling]]


def test_measuring_runs_the_ranked_cases_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    real = Checker.call

    def call(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        called.append(case.name)
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "call", call)
    monkeypatch.setattr(Checker, "case", None)
    result = bench.grade(GOOD, work=Work.measure)
    assert [(case.name, case.verdict) for case in result.cases] == [("ranked", Verdict.passed)]
    assert phases(result) == [Phase.preparing, Phase.compiling, Phase.measuring, Phase.reporting]
    assert [(found.case, len(found.pairs)) for found in result.measurements] == [("ranked", 3)]
    assert called == ["ranked"] * 8
    assert result.verdict is Verdict.passed
    # It works with torch, as whoever looks at the timed runner sees.
    assert {found.kind for found in result.findings} == {FindingKind.no_kernel, FindingKind.library_call}
    assert result.explanation == "All 1 ranked cases were measured."
    assert [case.name for case in bench.finished()] == ["ranked"]
    for event in bench.events:
        assert codec.loads(type(event), codec.dumps(event)) == event


def test_a_timed_call_that_fails_makes_the_verdict(bench: Bench) -> None:
    result = bench.grade(LAZY, work=Work.measure)
    assert result.verdict is Verdict.wrong_answer
    assert [case.verdict for case in result.cases] == [Verdict.wrong_answer]
    assert result.explanation.startswith("Wrong answer in case `ranked`. In a timed call: Nothing was written")
    assert result.measurements == ()


@pytest.mark.parametrize(
    ("source", "verdict"),
    [("x = 1\n", Verdict.compile_error), (body("os._exit(0)"), Verdict.runtime_error), (WRONG, Verdict.passed)],
)
def test_measuring_has_a_verdict_of_its_own(bench: Bench, source: str, verdict: Verdict) -> None:
    assert bench.grade(source, work=Work.measure).verdict is verdict


def test_on_a_students_machine_measuring_works_without_the_staffs_folder(bench: Bench) -> None:
    result = bench.grade(GOOD, work=Work.measure, reference=None)
    assert [found.case for found in result.measurements] == ["ranked"]


def test_a_run_is_checked_and_not_measured(bench: Bench) -> None:
    result = bench.grade(GOOD, mode=Mode.run, work=Work.check)
    assert (result.verdict, len(result.cases)) == (Verdict.passed, 3)
    assert bench.grade(GOOD, mode=Mode.run, work=Work.measure).verdict is Verdict.grader_error


def test_a_lane_without_ranked_cases_has_nothing_to_measure(bench: Bench, tmp_path: Path) -> None:
    folder = edited(tmp_path, ("ranked = true", "ranked = false"))
    result = bench.grade(GOOD, work=Work.measure, assignment=folder)
    assert (result.verdict, result.cases, result.measurements) == (Verdict.passed, (), ())
    assert result.explanation == "There was nothing to measure."


@pytest.mark.full("slow")
def test_what_stood_in_memory_is_let_go_before_the_next_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[Snapshot] = weakref.WeakSet()
    most = 0
    real = SharedTensor.snapshot

    def snapshot(self: SharedTensor) -> Snapshot:
        nonlocal most
        gc.collect()
        made = real(self)
        alive.add(made)
        most = max(most, len(alive))
        return made

    monkeypatch.setattr(SharedTensor, "snapshot", snapshot)
    monkeypatch.setattr(Snapshot, "__hash__", object.__hash__)
    # Only what is made from here on is collected, or every call would look through all that other tests left.
    gc.freeze()
    try:
        assert bench.grade(GOOD).verdict is Verdict.passed
    finally:
        gc.unfreeze()
    assert most == 3, "one call's tensors: `a`, `out`, `negative`"


def test_a_timed_call_keeps_nothing_of_its_memory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor | Snapshot] = []
    real = Checker.call

    def call(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        checked = real(self, runner, case)
        assert checked.finished is not None
        kept.extend([*checked.finished.snapshots, *checked.outputs.values()])
        return checked

    monkeypatch.setattr(Checker, "call", call)
    assert bench.grade(GOOD, work=Work.measure).verdict is Verdict.passed
    assert kept == []


@pytest.mark.parametrize("source", [GOOD, WRONG, HIDDEN_WRONG, "x = 1\n", body("os._exit(0)")])
def test_what_is_begun_ahead_changes_no_result_and_is_not_left(
    bench: Bench, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bench.grade(source, work=Work.check)
    started: list[Runner] = []
    start = bench.sandbox.start

    def counted(*arguments: Any, **options: Any) -> Runner:
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(bench.sandbox, "start", counted)
    monkeypatch.setattr(Grading, "_can_overlap", lambda _: True)
    result = bench.grade(source, work=Work.check)
    assert (result.verdict, told(result.cases)) == (expected.verdict, told(expected.cases))
    assert [one.kind for one in result.findings] == [one.kind for one in expected.findings]
    assert all(runner.poll() is not None for runner in started)


def test_a_runner_that_was_started_ahead_is_the_next_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Public cases, hidden ones and the replay: three runners, each with the source loaded once."""
    monkeypatch.setattr(Grading, "_can_overlap", lambda _: True)
    loaded: list[int] = []
    load = RunnerClient.load

    def noted(talk: RunnerClient, what: Load, packs: Sequence[int] = ()) -> Failure | None:
        loaded.append(id(talk._runner))
        return load(talk, what, packs)

    monkeypatch.setattr(RunnerClient, "load", noted)
    started: list[int] = []
    start = bench.sandbox.start

    def counted(*arguments: Any, **options: Any) -> Runner:
        runner = start(*arguments, **options)
        started.append(id(runner))
        return runner

    monkeypatch.setattr(bench.sandbox, "start", counted)
    assert bench.grade(GOOD, work=Work.check).verdict is Verdict.passed
    assert sorted(loaded) == sorted(started)
    assert len(started) == 3


def test_nobody_is_told_what_is_wrong_with_a_replay(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its kernels a good submission's output is wrong, as it should be; to say how takes seconds at first."""
    told: list[str] = []
    real = explain.mismatch
    monkeypatch.setattr(explain, "mismatch", lambda name, *rest: told.append(name) or real(name, *rest))
    result = bench.grade(GOOD)
    assert result.verdict is Verdict.passed
    assert not {finding.kind for finding in result.findings} & {FindingKind.decoration, FindingKind.no_replay}
    assert told == []
