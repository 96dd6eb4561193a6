"""Clocks around the judge's steps: what each takes by itself, and on the judge as it is."""

from __future__ import annotations

import time

import pytest

from autograder.contract import Lane
from autograder.judge.protocol.buffers import Buffers
from scripts.measurement_steps import Clock, clocked, shown


def test_what_a_step_calls_that_is_one_too_is_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    settled: list[float] = []
    clock = Clock(lambda: settled.append(now[0]))

    def passes(seconds: float) -> None:
        now[0] += seconds

    inner = clock.around("inner", passes)

    def outer() -> str:
        passes(1.0)
        inner(2.0)
        inner(4.0)
        passes(8.0)
        return "done"

    assert clock.around("outer", outer)() == "done"
    found = clock.taken()
    assert found == {"inner": {"seconds": 6.0, "times": 2}, "outer": {"seconds": 9.0, "times": 1}}
    assert len(settled) == 6, "the device is waited for on either side of each"
    assert clock.taken() == {}
    assert [line.split()[0] for line in shown(found).splitlines()] == ["step", "outer", "inner"]


def test_a_step_that_fails_is_counted_and_fails() -> None:
    clock = Clock(lambda: None)

    def failing() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        clock.around("failing", failing)()
    assert clock.taken()["failing"]["times"] == 1


def test_the_judge_is_as_it_was_afterwards() -> None:
    before = Buffers.make
    with clocked(Lane.cpu):
        assert Buffers.make is not before
    assert Buffers.make is before
