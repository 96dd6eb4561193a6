"""Runners that are ended while threads work with them: nothing is lost, mixed up, waited for or anybody's verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.assignment import Case, Limits
from autograder.contract import Lane, Language, Verdict, Visibility, Work
from autograder.errors import GpuMemoryError, SandboxError
from autograder.judge import grading
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.correctness.parallel_cases import CaseDispatcher
from autograder.judge.defences import ALL_ON
from autograder.judge.grading import Grading
from autograder.judge.probes.work_probe import WorkProbe
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.loading import limits_on
from autograder.judge.protocol.runner_client import Budget, RunnerClient
from autograder.judge.runners import Runners
from autograder.protocol import Load
from autograder.sandbox import Exit
from autograder.sandbox.docker.engine import Engine
from tests.autograder.grading_bench import GOOD, Bench, kernel

IN_A_THREAD = "cases"


@pytest.fixture
def many(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """As on a GPU's lane, with runners that wait."""
    monkeypatch.setattr(Grading, "_can_overlap", lambda _: True)
    monkeypatch.setattr(grading, "MIN_CASES_PER_RUNNER", 1)
    monkeypatch.setattr(bench.sandbox, "warm_count", lambda *_: 6)
    return bench


@pytest.fixture
def single(many: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The same on a node whose containers are all taken: nobody is beside, and the look is had aside."""
    monkeypatch.setattr(many.sandbox, "warm_count", lambda *_: 0)
    return many


def beside() -> bool:
    return threading.current_thread().name.startswith(IN_A_THREAD)


def held_up(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> None:
    """Have the look that is had beside the cases begin when it is released, or when its runner is ended."""
    real = WorkProbe._replay

    def replay(self: WorkProbe, begin: Callable[[], RunnerClient | Failure]) -> dict[str, CallResult]:
        if beside():
            release.wait(20)
        return real(self, begin)

    monkeypatch.setattr(WorkProbe, "_replay", replay)


def released_when_alone(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> None:
    real = Runners.close

    def close(self: Runners) -> None:
        real(self)
        release.set()

    monkeypatch.setattr(Runners, "close", close)


def test_a_look_whose_runner_was_ended_is_had_again(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a submission that runs out of memory once would have the grader fail, or be looked at by nobody."""
    expected = [one.kind for one in many.grade(GOOD, work=Work.all).findings]
    release = threading.Event()
    held_up(monkeypatch, release)
    released_when_alone(monkeypatch, release)
    real = Checker.case

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        if beside():
            return CallResult(Verdict.out_of_memory, "It raised MemoryError.")
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "case", case)
    result = many.grade(GOOD, work=Work.check)
    assert result.verdict is Verdict.passed
    assert [one.kind for one in result.findings] == expected


@pytest.mark.full("slow")
def test_who_is_asked_alone_is_alone(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread whose runner has been ended may still compare, with memory of the judge's."""
    busy: list[str] = []
    met: list[list[str]] = []
    two = threading.Barrier(2, timeout=20)
    real = Checker.case

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        if not beside():
            met.append(list(busy))
            return real(self, runner, case)
        busy.append(case.name)
        first = len(busy) == 1
        try:
            two.wait()
            if not first:
                time.sleep(1.5)
            return CallResult(Verdict.out_of_memory, "Somebody had it.", ended=True)
        except threading.BrokenBarrierError:
            return CallResult(Verdict.out_of_memory, "Nobody was beside.", ended=True)
        finally:
            busy.remove(case.name)

    monkeypatch.setattr(Checker, "case", case)
    many.grade(GOOD, work=Work.check)
    assert met
    assert not any(met)


@pytest.mark.parametrize("is_over", [False, True])
def test_no_memory_beside_a_look_is_nobodys_fault(
    single: Bench, is_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay that has taken the device's memory is no failure of the grader's, which would draw the cases again.

    What is over still has it: its runner waits, frozen, until it is ended.
    """
    release = threading.Event()
    if is_over:
        monkeypatch.setattr(
            WorkProbe, "begin", lambda self: self._dispatcher.aside(self._runners.noop_replay()).result()
        )
    else:
        held_up(monkeypatch, release)
    released_when_alone(monkeypatch, release)
    real = Checker.case

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        if not release.is_set():
            raise GpuMemoryError("the CUDA driver says CUDA_ERROR_OUT_OF_MEMORY")
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "case", case)
    assert single.grade(GOOD, work=Work.check).verdict is Verdict.passed
    assert release.is_set()


@pytest.mark.parametrize("problem", [SandboxError("no memory"), Failure(Verdict.out_of_memory, "No memory.")])
def test_a_look_aside_is_not_in_the_way_of_the_hidden_cases(
    single: Bench, problem: SandboxError | Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    held_up(monkeypatch, release)
    aside: list[RunnerClient] = []
    real_ghost, real_load, real_close = Runners.noop_replay, RunnerClient.load, RunnerClient.close
    loads: list[RunnerClient] = []

    def ghost(self: Runners) -> object:
        begin = real_ghost(self)
        aside[:] = self._aside[-1:]
        return begin

    def close(self: RunnerClient) -> None:
        real_close(self)
        if self in aside:
            aside.clear()
            release.set()

    def load(self: RunnerClient, load: Load, packs: Sequence[int] = ()) -> Failure | None:
        loads.append(self)
        if len(loads) > 1 and not release.is_set() and not beside():
            if isinstance(problem, Failure):
                return problem
            raise problem
        return real_load(self, load, packs)

    monkeypatch.setattr(Runners, "noop_replay", ghost)
    monkeypatch.setattr(RunnerClient, "close", close)
    monkeypatch.setattr(RunnerClient, "load", load)
    result = single.grade(GOOD, work=Work.check)
    assert release.is_set()
    assert [case.verdict for case in result.cases] == [Verdict.passed] * 5


def test_a_first_runner_that_lacks_what_others_have_is_asked_again_alone(
    single: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where kernels are compiled ahead, replay and tracer load at the same time as it."""
    real, failed = Runners.fresh, list[Failure]()

    def fresh(self: Runners, meanwhile: Callable[[], None] | None = None, **options: Any) -> RunnerClient | Failure:
        if meanwhile is None:
            return real(self, **options)
        meanwhile()
        failed.append(Failure(Verdict.out_of_memory, "No memory."))
        return failed[-1]

    monkeypatch.setattr(Runners, "precompiles", property(lambda _: not failed))
    monkeypatch.setattr(Runners, "fresh", fresh)
    result = single.grade(GOOD, work=Work.check)
    assert len(failed) == 1
    assert [case.verdict for case in result.cases] == [Verdict.passed] * 5


def test_a_runner_beside_the_first_that_does_not_start_is_not_missed(
    single: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = Runners.start_next, list[int]()

    def start_next(self: Runners, count: int = 1) -> None:
        asked.append(count)
        if len(asked) == 2:
            raise SandboxError("no container")
        real(self, count)

    real_fresh = Runners.fresh

    def fresh(self: Runners, meanwhile: Callable[[], None] | None = None, **options: Any) -> RunnerClient | Failure:
        runner = real_fresh(self, **options)
        if meanwhile is not None:
            asked[:] = [1]
            meanwhile()
        return runner

    monkeypatch.setattr(Runners, "precompiles", property(lambda self: self._present is None))
    monkeypatch.setattr(Runners, "fresh", fresh)
    monkeypatch.setattr(Runners, "start_next", start_next)
    assert single.grade(GOOD, work=Work.check).verdict is Verdict.passed
    assert len(asked) > 2


@pytest.mark.parametrize("work", [Work.check, Work.all])
def test_what_is_compiled_for_the_student_meets_nobody_who_knows_hidden_sizes(
    many: Bench, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels' names are shown: memory that a runner of hidden cases holds, in /proc for all to read, must be gone.

    So must whoever looked beside the hidden cases: it could have felt it there, and hold it now.
    """
    real, seen = Grading._begin_compiling, list[tuple[object, ...]]()

    def begin(self: Grading) -> None:
        runners = self._runners
        seen.append((runners._present, *runners._beside, *runners._next, *runners._aside, runners.precompiles))
        assert all(result.verdict is Verdict.passed for result in self._results.all())
        assert self._work_probe._replayed is not None
        assert self._work_probe._replayed.done()
        assert self._work_probe._replayed.exception() is None
        real(self)

    monkeypatch.setattr(Grading, "_begin_compiling", begin)
    assert many.grade(GOOD, work=work).verdict is Verdict.passed
    assert seen == [(None, False)]


@pytest.mark.full("slow")
def test_what_runs_at_the_same_time_is_spent_once(many: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading ten times instead of four must not use up what the hidden cases need."""
    real = Runners.another
    seen: list[tuple[float, float]] = []

    def another(self: Runners, visibility: Visibility) -> RunnerClient | Failure:
        spent = self._budget.total_s
        runner = real(self, visibility)
        seen.append((spent - self._before_s, time.monotonic() - began))
        return runner

    monkeypatch.setattr(Runners, "another", another)
    began = time.monotonic()
    many.grade(kernel(before="time.sleep(0.4)", top="time.sleep(1)"), work=Work.check)
    [(spent, wall)] = seen
    assert spent <= wall


@pytest.mark.full("slow")
def test_asking_again_does_not_give_back_time_that_nobody_else_took(
    single: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a submission could run for twice its time, which an attempt does not have."""
    held_up(monkeypatch, threading.Event())
    monkeypatch.setattr(WorkProbe, "begin", lambda _: None)
    real_case, real_fresh = Checker.case, Runners.fresh
    left: list[float] = []

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        checked = real_case(self, runner, case)
        return CallResult(Verdict.out_of_memory, "Once more.") if len(left) == 1 else checked

    def fresh(self: Runners, **options: Any) -> RunnerClient | Failure:
        runner = real_fresh(self, **options)
        left.append(self._before_s)
        return runner

    monkeypatch.setattr(CaseDispatcher, "is_busy", lambda _: len(left) == 1)
    monkeypatch.setattr(Checker, "case", case)
    monkeypatch.setattr(Runners, "fresh", fresh)
    single.grade(kernel(before="time.sleep(0.4)"), work=Work.check)
    assert left[1] < left[0] - 0.7


def test_others_that_are_late_are_not_beside_the_next() -> None:
    """A thread whose loading ends when the hidden cases have begun must not put its runner among theirs."""
    late = Runners.__new__(Runners)
    talk = RunnerClient.__new__(RunnerClient)
    late._beside = {talk: 0}
    late._begun = lambda talk, *_, **__: talk  # type: ignore[method-assign]
    talk.log = lambda: "loaded"  # type: ignore[method-assign]
    [begin] = late.beside()
    late._beside = {}
    begin()
    assert late._beside == {}


def test_whoever_ends_a_runner_waits_for_who_uses_it_and_is_not_waited_for(bench: Bench) -> None:
    """What a thread holds are numbers of descriptors: they must not become somebody else's under it."""
    limits = Limits()
    runner = bench.sandbox.start(limits_on(Lane.cpu, limits), Language.triton)
    talk = RunnerClient(runner, limits, Budget(60.0), ALL_ON)
    talk.hello()
    ended: list[object] = []
    inside = threading.Event()
    real = runner.poll

    def poll() -> Exit | None:
        inside.set()
        assert talk._judge_word.descriptor >= 0
        return real()

    runner.poll = poll  # type: ignore[method-assign]
    load = Load("import time\ntime.sleep(60)\n", "a.py", Language.triton, "f", ())
    thread = threading.Thread(target=lambda: ended.append(talk.load(load)))
    thread.start()
    assert inside.wait(30)
    began = time.monotonic()
    talk.close()
    thread.join(10)
    assert time.monotonic() - began < 10
    assert isinstance(ended[0], Failure)
    assert isinstance(talk.call((), {}), Failure)
    assert isinstance(talk.load(load), Failure)


def test_a_runner_that_cannot_be_ended_does_not_keep_the_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the sandbox would stay quiet, and its pool empty, for every job that comes."""
    quiet: list[str] = []

    class Quiet:
        def __enter__(self) -> None:
            quiet.append("quiet")

        def __exit__(self, *_: object) -> None:
            quiet.append("over")

    real = Runners.close

    def close(self: Runners) -> None:
        real(self)
        if quiet:
            raise SandboxError("a process cannot be killed")

    monkeypatch.setattr(bench.sandbox, "pause_background_work", Quiet)
    monkeypatch.setattr(Runners, "close", close)
    assert bench.grade(GOOD).verdict is Verdict.grader_error
    assert quiet == ["quiet", "over"]


def test_one_that_cannot_be_ended_does_not_keep_another() -> None:
    runners = Runners.__new__(Runners)
    closed: list[str] = []

    class Talk:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)
            if self.name == "aside":
                raise SandboxError("a process cannot be killed")

    for name, value in {"_next": [Talk("next")], "_aside": [Talk("aside")], "_beside": {Talk("beside"): 0}}.items():
        setattr(runners, name, value)
    ahead = SimpleNamespace(close=lambda: None)
    runners.__dict__.update(_present=Talk("present"), _packs={}, _warmup=ahead, cut_short=False)
    with pytest.raises(SandboxError):
        runners.close()
    assert sorted(closed) == ["aside", "beside", "next", "present"]


def test_threads_that_have_ended_leave_no_connection_to_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check ends its runners by threads of their own: a connection each would use up the judge's descriptors."""
    docker = pytest.importorskip("docker")
    made: list[object] = []

    class Client:
        def __init__(self, **_: object) -> None:
            made.append(self)
            self.api = self

        def version(self) -> dict[str, str]:
            return {"Version": "1"}

        def close(self) -> None:
            made.remove(self)

    monkeypatch.setattr(docker, "from_env", Client)
    engine = Engine()
    for _ in range(5):
        threads = [threading.Thread(target=engine.version) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) <= 2
    engine.close()
    assert not made
