"""What only the backstop ended is asked again, alone, on a quiet machine, before it is a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from autograder.assignment import Case
from autograder.contract import Verdict, Work
from autograder.judge import grading
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.protocol import runner_client as conversations
from autograder.judge.protocol.failure import Failure, out_of_time
from autograder.judge.protocol.own_time import BACKSTOP
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.protocol import Load
from autograder.sandbox import Spent
from tests.autograder.grading_bench import GOOD, Bench, body, edited, kernel
from tests.autograder.judge.protocol.test_runner_client import (
    LIMITS,
    Script,
    ScriptedRunner,
    Talk,
    called,
    opened,
    talk,
)

__all__ = ["talk"]

LATE = CallResult(Verdict.time_limit, "It did not end within 100 s.", ended=True, starved=True)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How often, and for how long at most, a quiet machine was waited for."""
    found: list[float] = []
    monkeypatch.setattr(grading, "wait_until_machine_idle", lambda most_s: found.append(most_s) or True)
    return found


def late(monkeypatch: pytest.MonkeyPatch, is_late: Callable[[Case, int], bool]) -> dict[str, int]:
    """Have calls of a case be late, by how often it was asked."""
    real, asked = Checker.case, dict[str, int]()

    def case(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        asked[case.name] = asked.get(case.name, 0) + 1
        return LATE if is_late(case, asked[case.name]) else real(self, runner, case)

    monkeypatch.setattr(Checker, "case", case)
    return asked


def test_every_case_is_asked_again_once_when_the_machine_is_quiet(
    bench: Bench, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = late(monkeypatch, lambda _, times: times == 1)
    result = bench.grade(GOOD, work=Work.check)
    assert [case.verdict for case in result.cases] == [Verdict.passed] * 5
    assert set(asked.values()) == {2}
    assert len(waits) == 5


def test_what_is_late_again_has_its_verdict(bench: Bench, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = late(monkeypatch, lambda *_: True)
    result = bench.grade(GOOD, work=Work.check)
    assert [case.verdict for case in result.cases] == [Verdict.time_limit, None, None, None, None]
    assert list(asked.values()) == [2]
    assert len(waits) == 1


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.passed), (2, Verdict.time_limit)])
def test_loading_is_asked_again_once(
    bench: Bench, waits: list[float], times: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, loads = RunnerClient.load, list[Load]()

    def load(self: RunnerClient, load: Load, packs: Sequence[int] = ()) -> Failure | None:
        loads.append(load)
        return out_of_time("loading", 100, starved=True) if len(loads) <= times else real(self, load, packs)

    monkeypatch.setattr(RunnerClient, "load", load)
    assert bench.grade(GOOD, work=Work.check).verdict is verdict
    assert len(waits) == 1


class Others:
    """A kernel that says how long others had the processors: all the time, or never; and a runner's own time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, processors: float, waiting: float) -> None:
        began = conversations.time.monotonic()

        def spent(_: ScriptedRunner) -> Spent:
            passed = conversations.time.monotonic() - began
            return Spent(processors * passed, waiting * passed)

        monkeypatch.setattr(ScriptedRunner, "spent", spent)


def silent(said: threading.Event, *, answers: bool) -> Callable[[Script], None]:
    """Load, and say nothing to the first call until it is time, if ever."""

    def play(script: Script) -> None:
        script.start()
        nonce = script.hear()["nonce"]
        said.wait(2.0)
        if answers:
            script.finish(nonce)
            script.say({"is": "Returned", "nonce": nonce})
            script.say({"is": "Released", "nonce": nonce})
        script.hear()

    return play


def limited(call_s: float) -> object:
    return type(LIMITS)(import_s=5.0, call_s=call_s)


def test_a_starved_call_that_ends_before_the_backstop_has_ended(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes four times its limit, and the processors are others' for all but a tenth of that."""
    Others(monkeypatch, processors=0.1, waiting=0.9)
    conversation = talk(silent(threading.Event(), answers=True), limits=limited(0.5))
    assert opened(conversation) is None
    left_s = conversation._budget.left_s
    assert not isinstance(called(conversation), Failure)
    assert conversation._budget.left_s > left_s - 1.0


@pytest.mark.parametrize(
    ("spends", "starved", "words"),
    [
        ((0.0, 0.0), False, "The call did not end within 0.2 s"),
        ((0.5, 0.9), False, "The call used 0.2 s of processor time"),
        ((0.0, 1.0), True, f"The call did not end within {0.2 * BACKSTOP:g} s"),
    ],
)
def test_who_is_late_is_told_why(
    talk: Talk, spends: tuple[float, float], starved: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Others(monkeypatch, processors=spends[0], waiting=spends[1])
    never = threading.Event()
    conversation = talk(lambda script: script.start() or [script.hear(), script.hear()], limits=limited(0.2))
    assert opened(conversation) is None
    found = called(conversation)
    never.set()
    assert isinstance(found, Failure)
    assert (found.verdict, found.starved) == (Verdict.time_limit, starved)
    assert words in found.message


@pytest.fixture
def busy() -> Iterator[None]:
    """Others on this machine, three for each processor; each ends by itself, whatever becomes of the test."""
    spin = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    count = 3 * min(2, len(os.sched_getaffinity(0)))
    others = [subprocess.Popen([sys.executable, "-S", "-c", spin]) for _ in range(count)]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("busy")
def test_a_call_that_needs_half_its_limit_passes_beside_others(bench: Bench) -> None:
    once = (
        "if not DONE:\n    DONE.append(1)\n    end = time.process_time() + 1\n    while time.process_time() < end: pass"
    )
    assert bench.grade(kernel(before=once, top="DONE = []")).verdict is Verdict.passed


def test_work_in_a_daemon_is_the_submissions_own(bench: Bench, tmp_path: Path) -> None:
    """It has left its parent and its session, and the entry waits for what never comes."""
    daemon = "import os\nif os.fork() == 0:\n    os.setsid()\n    while os.fork() == 0:\n        while True: pass\n"
    folder = edited(tmp_path, ("call_s = 2", "call_s = 0.3"))
    result = bench.grade(body(f"{daemon}    os._exit(0)\nos.wait()\ntime.sleep(60)"), assignment=folder)
    assert result.verdict is Verdict.time_limit
