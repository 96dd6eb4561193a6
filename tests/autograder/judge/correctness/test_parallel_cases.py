"""Several runners at one submission: they find what one finds, hidden cases are met by nobody who met public ones."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import pytest

from autograder.assignment import Case, load_assignment
from autograder.contract import CaseResult, FindingKind, GradeResult, Verdict, Visibility, Work
from autograder.errors import GpuMemoryError, HarnessError, SandboxError
from autograder.judge import grading
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.correctness.parallel_cases import LARGE_CASE_SHARE, CaseDispatcher, room_for
from autograder.judge.correctness.problem import load_problem
from autograder.judge.defences import ALL_ON
from autograder.judge.grading import Grading
from autograder.judge.probes.work_probe import WorkProbe
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.loading import Begin
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.runners import Runners
from autograder.protocol import Load
from autograder.sandbox import Runner
from tests.autograder.grading_bench import ASSIGNMENT, GOOD, Bench, body, kernel

WRONG = kernel(after="if m == 32: out[30:] = -7")
HIDDEN_WRONG = kernel(after="if n not in (5, 33, 128): out[0, 0] = 9")
ENDS_IN_THE_SECOND = kernel(before="if (m, n) == (32, 33): os._exit(3)")
IN_A_THREAD = "cases"


@pytest.fixture
def many(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """As on a GPU's lane, with three runners that wait."""
    _as_on_a_gpu(bench, monkeypatch)
    return bench


def _as_on_a_gpu(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grading, "_can_overlap", lambda _: True)
    monkeypatch.setattr(grading, "MIN_CASES_PER_RUNNER", 1)
    monkeypatch.setattr(bench.sandbox, "warm_count", lambda *_: 6)


def told(result: GradeResult) -> list[tuple[str, Verdict | None, str]]:
    """Hidden cases are drawn for each attempt: their category is what two attempts have in common."""
    return [_one(case) for case in result.cases]


def _one(case: CaseResult) -> tuple[str, Verdict | None, str]:
    if case.visibility is Visibility.hidden:
        return case.category, case.verdict, ""
    return case.name, case.verdict, case.message.partition("expected")[0]


def beside() -> bool:
    return threading.current_thread().name.startswith(IN_A_THREAD)


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    "source", [GOOD, WRONG, HIDDEN_WRONG, ENDS_IN_THE_SECOND, "x = 1\n", body("os._exit(0)"), body("return")]
)
def test_they_find_what_one_finds_and_none_is_left(bench: Bench, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = bench.grade(source, work=Work.check)
    _as_on_a_gpu(bench, monkeypatch)
    started: list[Runner] = []
    start = bench.sandbox.start

    def counted(*arguments: Any, **options: Any) -> Runner:
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(bench.sandbox, "start", counted)
    result = bench.grade(source, work=Work.check)
    assert (result.verdict, told(result)) == (expected.verdict, told(expected))
    assert [one.kind for one in result.findings] == [one.kind for one in expected.findings]
    assert all(runner.poll() is not None for runner in started)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(IN_A_THREAD)]


def test_cases_are_dealt_and_told_in_order(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    by: dict[str, RunnerClient] = {}
    real, meet = Checker.case, threading.Barrier(2, timeout=60)

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        by[case.name] = runner
        if len(by) <= 2:
            meet.wait()  # Two runners have a case each at the same time, or this breaks.
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "case", case)
    result = many.grade(GOOD, work=Work.check)
    assert result.verdict is Verdict.passed
    assert [done.name for done in many.finished()] == [case.name for case in result.cases]
    public = {by[case.name] for case in result.cases if case.visibility is Visibility.public}
    hidden = {by[case.name] for case in result.cases if case.visibility is Visibility.hidden}
    assert len(public) >= 2
    assert not public & hidden


def test_hidden_cases_are_never_called_beside_public_ones(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now, lock = Counter[Visibility](), threading.Lock()
    both: list[str] = []
    real = Checker.case

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        with lock:
            now[case.visibility] += 1
            both.extend([case.name] if len(+now) > 1 else [])
        try:
            return real(self, runner, case)
        finally:
            with lock:
                now[case.visibility] -= 1

    monkeypatch.setattr(Checker, "case", case)
    assert many.grade(GOOD, work=Work.check).verdict is Verdict.passed
    assert both == []


@pytest.mark.full("slow")
@pytest.mark.parametrize("verdict", [Verdict.time_limit, Verdict.out_of_memory])
@pytest.mark.parametrize("ended", [True, False])
def test_what_ran_out_beside_others_is_asked_again_alone(
    many: Bench, verdict: Verdict, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Checker.case

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        if beside() and not case.ranked:
            return CallResult(verdict, "Somebody else had it.", ended=ended)
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "case", case)
    result = many.grade(GOOD, work=Work.check)
    assert [case.verdict for case in result.cases] == [Verdict.passed] * 5


def test_what_runs_out_alone_too_is_its_own_doing(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def case(*_: object) -> CallResult:
        return CallResult(Verdict.time_limit, "Too slow.", ended=True)

    monkeypatch.setattr(Checker, "case", case)
    result = many.grade(GOOD, work=Work.check)
    assert [case.verdict for case in result.cases] == [Verdict.time_limit, None, None, None, None]


def test_no_memory_beside_others_is_nobodys_fault(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Checker.case

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        if beside():
            raise GpuMemoryError("the CUDA driver says CUDA_ERROR_OUT_OF_MEMORY")
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "case", case)
    assert many.grade(GOOD, work=Work.check).verdict is Verdict.passed


def test_a_fault_of_ours_in_a_thread_is_the_graders(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def case(*_: object) -> CallResult:
        raise HarnessError("the oracle is broken")

    monkeypatch.setattr(Checker, "case", case)
    assert many.grade(GOOD, work=Work.check).verdict is Verdict.grader_error


@pytest.mark.parametrize("problem", [SandboxError("it took too long"), Failure(Verdict.runtime_error, "Not again.")])
def test_one_that_does_not_begin_is_not_missed(
    many: Bench, problem: SandboxError | Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = RunnerClient.load

    def load(self: RunnerClient, load: Load, packs: Sequence[int] = ()) -> Failure | None:
        if not beside():
            return real(self, load, packs)
        if isinstance(problem, Failure):
            return problem
        raise problem

    monkeypatch.setattr(RunnerClient, "load", load)
    assert many.grade(GOOD, work=Work.check).verdict is Verdict.passed


def test_what_loading_prints_is_shown_once_and_every_call(many: Bench) -> None:
    source = kernel(before="print('called', m, n)", top="print('loaded')")
    lines = Counter(many.grade(source, work=Work.check).log.splitlines())
    assert lines.pop("loaded") == 1
    assert set(lines.values()) == {2}
    assert len(lines) == 3


def test_a_replay_that_ran_out_beside_others_is_made_again(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry below needs no kernel: the replay says so, whenever it is made."""
    real = Checker.call

    def call(self: Checker, runner: RunnerClient, case: Case, *, cold: bool = True) -> CallResult:
        checked = real(self, runner, case, cold=cold)
        return dataclasses.replace(checked, verdict=Verdict.time_limit, ended=True) if beside() else checked

    monkeypatch.setattr(Checker, "call", call)
    result = many.grade(GOOD, work=Work.check)
    assert FindingKind.no_replay not in {one.kind for one in result.findings}


class OneDevice:
    """A device's memory, and nothing else of it."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes


def test_large_cases_take_turns_and_small_ones_do_not_wait() -> None:
    assignment = load_assignment(ASSIGNMENT)
    checker = Checker(assignment, load_problem(assignment, ASSIGNMENT), ALL_ON, HOST)
    small, large = sorted(assignment.cases, key=lambda case: room_for(assignment, [case]))[:: len(assignment.cases) - 1]
    abreast = CaseDispatcher(
        checker, cast("Device", OneDevice(int(room_for(assignment, [large]) / LARGE_CASE_SHARE) - 1))
    )
    with abreast.turn(large):
        assert abreast._large.locked()
        with abreast.turn(small):
            pass
    assert not abreast._large.locked()
    unknown = CaseDispatcher(checker, HOST)
    with unknown.turn(large), unknown.turn(large):
        pass


@pytest.mark.parametrize("during", ["_replay", "_trace"])
def test_a_look_that_did_not_begin_beside_others_is_had_alone(
    many: Bench, during: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submission that held the device's memory would have ended as a fault of ours, and drawn its cases again."""
    real = getattr(WorkProbe, during)
    alone: list[bool] = []

    def look(self: WorkProbe, begin: Begin) -> object:
        if beside():
            raise SandboxError("a runner did not start: CUDA error: out of memory")
        alone.append(self._runners._present is None)
        return real(self, begin)

    monkeypatch.setattr(WorkProbe, during, look)
    result = many.grade(GOOD, work=Work.check)
    assert result.verdict is Verdict.passed
    assert FindingKind.no_replay not in {one.kind for one in result.findings}
    assert alone == ([True] if during == "_replay" else [])  # A CPU has no trace.


def test_a_look_whose_runner_cannot_be_started_beside_others_is_had_alone(
    many: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, started = Runners.noop_replay, list[bool]()

    def ghost(self: Runners) -> Begin:
        started.append(self._present is None)
        if not started[-1]:
            raise SandboxError("no container could be made")
        return real(self)

    monkeypatch.setattr(Runners, "noop_replay", ghost)
    result = many.grade(GOOD, work=Work.check)
    assert result.verdict is Verdict.passed
    assert FindingKind.no_replay not in {one.kind for one in result.findings}
    assert started == [False, False, True]  # Asked again when the hidden cases begin.


@pytest.mark.parametrize("precompiles", [False, True])
def test_where_kernels_are_compiled_ahead_the_look_begins_when_no_public_case_is_called_any_more(
    many: Bench, precompiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read on an H200: public calls waited for the contexts of those who look, 0.3 s of a check."""
    real_hidden, real_begin = Grading._check_hidden, WorkProbe.begin
    order: list[str] = []

    def check_hidden(self: Grading) -> None:
        order.append("public cases are over")
        real_hidden(self)

    def begin(self: WorkProbe) -> None:
        order.append("the look begins")
        real_begin(self)

    monkeypatch.setattr(Grading, "_check_hidden", check_hidden)
    monkeypatch.setattr(WorkProbe, "begin", begin)
    monkeypatch.setattr(Runners, "precompiles", precompiles)
    assert many.grade(GOOD, work=Work.check).verdict is Verdict.passed
    assert order[0] == ("public cases are over" if precompiles else "the look begins")


def test_a_runner_that_was_started_ahead_and_could_not_begin_is_started_again(
    many: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public cases' runner may have held what it needed; then it is gone."""
    real = RunnerClient.hello
    begun: list[RunnerClient] = []
    refused: list[RunnerClient] = []

    def hello(self: RunnerClient) -> None:
        is_first = not begun
        begun.append(self)
        if not is_first and not beside() and not refused:
            refused.append(self)
            raise SandboxError("a runner did not start: CUDA error: out of memory")
        real(self)

    monkeypatch.setattr(RunnerClient, "hello", hello)
    result = many.grade(GOOD, work=Work.check)
    assert refused
    assert [case.verdict for case in result.cases] == [Verdict.passed] * 5
