"""How much of a wait is the runner's own. Clock and kernel are numbers here: no test depends on a machine's load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from autograder.judge.protocol import own_time
from autograder.judge.protocol.own_time import BACKSTOP, Wait, wait_until_machine_idle
from autograder.sandbox import Spent

LIMIT_S = 2.0


@dataclass
class Machine:
    """A clock, and a runner that spends as it goes on."""

    now: float = 100.0
    processor_s: float = 7.0
    waited_s: float | None = 3.0
    reads: int = 0

    def clock(self) -> float:
        return self.now

    def spent(self) -> Spent:
        self.reads += 1
        return Spent(self.processor_s, self.waited_s)

    def go_on(self, seconds: float, *, processors: float = 0.0, waiting: float = 0.0) -> None:
        self.now += seconds
        self.processor_s += processors * seconds
        if self.waited_s is not None:
            self.waited_s += waiting * seconds

    def wait(self, limit_s: float = LIMIT_S, **more: float) -> Wait:
        return Wait(self, limit_s, clock=self.clock, **more)  # type: ignore[arg-type]


def test_who_sleeps_on_a_quiet_machine_is_over_at_the_limit() -> None:
    machine = Machine()
    wait = machine.wait()
    machine.go_on(1.99)
    assert not wait.is_over()
    machine.go_on(0.01)
    assert wait.is_over()
    assert wait.own().own_s == pytest.approx(LIMIT_S)


def test_who_needs_less_than_its_limit_goes_on_while_others_have_the_processors() -> None:
    machine = Machine()
    wait = machine.wait()
    machine.go_on(8, processors=0.125, waiting=0.875)
    assert wait.own().own_s == pytest.approx(1.0)
    assert not wait.is_over()


@pytest.mark.parametrize("waited_s", [3.0, None])
def test_who_spins_is_over_when_it_has_used_its_limit(waited_s: float | None) -> None:
    machine = Machine(waited_s=waited_s)
    wait = machine.wait()
    machine.go_on(8, processors=0.24, waiting=0.76)
    assert not wait.is_over()
    machine.go_on(1, processors=0.24, waiting=0.76)
    assert wait.is_over()


def test_many_threads_use_no_more_than_the_time_that_passed_and_no_less() -> None:
    """Ten that spin on two processors make each other wait all the time."""
    machine = Machine()
    wait = machine.wait()
    machine.go_on(1.5, processors=2, waiting=1)
    assert wait.own().own_s == 1.5
    assert not wait.is_over()
    machine.go_on(0.5, processors=2, waiting=1)
    assert wait.is_over()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_who_makes_its_own_processes_wait_by_turns_has_twice_its_limit_at_most(share: float) -> None:
    """While one of its processes waits on a machine of its own, another one of them has the processor."""
    machine = Machine()
    wait = machine.wait()
    machine.go_on(2 * LIMIT_S, processors=share, waiting=share)
    assert wait.is_over()
    assert wait.own().own_s >= LIMIT_S


def test_the_backstop_ends_who_does_nothing_on_a_busy_machine() -> None:
    machine = Machine()
    wait = machine.wait()
    machine.go_on(BACKSTOP * LIMIT_S - 0.1, waiting=1)
    assert not wait.is_over()
    machine.go_on(0.1, waiting=1)
    assert wait.is_over()
    assert wait.own().own_s < LIMIT_S


def test_where_nobody_tells_of_waiting_a_sleeper_has_until_the_backstop() -> None:
    machine = Machine(waited_s=None)
    wait = machine.wait()
    machine.go_on(BACKSTOP * LIMIT_S - 0.1)
    assert not wait.is_over()
    machine.go_on(0.1)
    assert wait.is_over()


def test_nothing_is_read_before_the_limit_has_passed() -> None:
    """Whoever is timed is not disturbed."""
    machine = Machine()
    wait = machine.wait()
    for _ in range(100):
        machine.go_on(0.019)
        assert not wait.is_over()
    assert machine.reads == 1


@pytest.mark.parametrize("left_s", [0.5, 0.0, -1.0])
def test_a_budget_that_is_shorter_is_the_limit(left_s: float) -> None:
    machine = Machine()
    wait = machine.wait(left_s=left_s)
    machine.go_on(max(0.0, left_s))
    assert wait.is_over()
    assert wait.is_cut(starved=False)
    assert not wait.is_cut(starved=True)


def test_what_a_wait_took_stands_when_it_has_ended() -> None:
    machine = Machine()
    wait = machine.wait()
    machine.go_on(1, waiting=0.5)
    assert wait.end() == 1
    machine.go_on(5)
    assert wait.own().own_s == 0.5


class Pressure:
    """A machine on which somebody waits for so much of each second, second by second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *shares: float) -> None:
        self.machine = Machine()
        self.shares = list(shares)
        monkeypatch.setattr(own_time, "waited_s", lambda: self.machine.waited_s)

    def sleep(self, seconds: float) -> None:
        self.machine.go_on(seconds, waiting=self.shares.pop(0) if self.shares else 1.0)

    def quiet(self, most_s: float) -> bool:
        return wait_until_machine_idle(most_s, self.machine.clock, self.sleep)


class TestQuiet:
    """Before somebody is asked again."""

    BUSY: ClassVar = (1.0, 0.9, 1.0)

    def test_it_is_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pressure = Pressure(monkeypatch, *self.BUSY, 0.1)
        assert pressure.quiet(20)
        assert pressure.machine.now == 104

    def test_not_for_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pressure = Pressure(monkeypatch)
        assert not pressure.quiet(20)
        assert pressure.machine.now == 120

    def test_not_at_all_where_nobody_tells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pressure = Pressure(monkeypatch)
        pressure.machine.waited_s = None
        assert pressure.quiet(20)
        assert pressure.machine.now == 100
