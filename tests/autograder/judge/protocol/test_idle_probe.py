"""Waiting for a quiet device, with a device of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.judge.protocol.idle_probe import FIRST_PROBES, IN_ALL_S, PATIENCE_S, IdleProbe

QUIET_US, CLEARING_US = 65.0, 72.0


class Device:
    """Says how long probes take, and lets time go by with each."""

    def __init__(self, times: Iterator[float]) -> None:
        self.times = times
        self.probes = 0
        self.seconds = 0.0

    def probe(self) -> float:
        self.probes += 1
        took = next(self.times)
        self.seconds += 2 * took / 1e6
        return took

    def now(self) -> float:
        return self.seconds


def lasting(*runs: tuple[int, float]) -> Iterator[float]:
    for count, took in runs:
        yield from [took] * count
    while True:
        yield runs[-1][1]


def made(*runs: tuple[int, float]) -> tuple[Device, IdleProbe]:
    device = Device(lasting((FIRST_PROBES, QUIET_US), *runs))
    return device, IdleProbe(device.probe, device.now)


def test_a_quiet_device_is_probed_once() -> None:
    device, pace = made((1, QUIET_US))
    assert pace.wait()
    assert device.probes == FIRST_PROBES + 1
    assert pace.wait()
    assert device.probes == FIRST_PROBES + 2


def test_it_waits_until_memory_is_cleared() -> None:
    device, pace = made((500, CLEARING_US), (1, QUIET_US))
    assert pace.wait()
    assert device.probes == FIRST_PROBES + 501


def test_what_does_not_end_is_the_new_pace_and_is_waited_for_once() -> None:
    device, pace = made((1, CLEARING_US))
    assert not pace.wait()
    assert device.seconds > PATIENCE_S
    before = device.probes
    assert pace.wait()
    assert device.probes == before + 1


def test_a_device_that_was_slow_at_first_is_known_by_its_best() -> None:
    """One that began to measure beside a neighbour does not take the neighbour's pace for its own for ever."""
    device = Device(lasting((FIRST_PROBES + 1, CLEARING_US), (2, QUIET_US), (100, CLEARING_US), (1, QUIET_US)))
    pace = IdleProbe(device.probe, device.now)
    assert pace.wait()
    assert pace.wait()
    assert pace.wait()
    before = device.probes
    assert pace.wait()
    assert device.probes == before + 101


def test_a_probe_that_jitters_is_no_disturbance() -> None:
    device, pace = made((1, 1.02 * QUIET_US), (1, 1.03 * QUIET_US))
    assert pace.wait()
    assert pace.wait()
    assert device.probes == FIRST_PROBES + 2


def test_one_lucky_probe_is_not_what_all_others_are_waited_for_to_reach() -> None:
    """Of a dozen thousand probes one is; each later wait would have lasted as long as the patience does."""
    device, pace = made((1, 0.9 * QUIET_US), (1, QUIET_US), (1, 0.9 * QUIET_US), (1, QUIET_US))
    for _ in range(5):
        assert pace.wait()
    assert device.probes == FIRST_PROBES + 5


def test_a_pace_that_two_probes_in_a_row_have_shown_is_the_devices() -> None:
    device, pace = made((2, 0.9 * QUIET_US), (7, QUIET_US), (1, 0.9 * QUIET_US))
    assert pace.wait()
    assert pace.wait()
    assert pace.wait()
    assert device.probes == FIRST_PROBES + 10


def test_what_fails_in_a_probe_is_what_is_raised() -> None:
    seconds = iter([0.0, 9.0, 9.0])
    pace = IdleProbe(lambda: 1 / 0, lambda: next(seconds))
    pace._best = QUIET_US
    with pytest.raises(ZeroDivisionError):
        pace.wait()


def test_nor_is_the_luckiest_of_what_does_not_end_the_new_pace() -> None:
    device, pace = made((1000, CLEARING_US), (1, 0.96 * CLEARING_US), (1, CLEARING_US))
    assert not pace.wait()
    device.times = lasting((1, 1.039 * CLEARING_US))
    before = device.probes
    assert pace.wait()
    assert device.probes == before + 1


@pytest.mark.parametrize(
    ("runs", "told"),
    [([(10, CLEARING_US), (1, QUIET_US)], 0), ([(2000, CLEARING_US), (1, QUIET_US)], 1), ([(1, CLEARING_US)], 1)],
)  # fmt: skip
def test_a_long_wait_is_told_of(caplog: pytest.LogCaptureFixture, runs: list[tuple[int, float]], told: int) -> None:
    _, pace = made(*runs)
    with caplog.at_level("INFO", "autograder.judge.protocol.idle_probe"):
        pace.wait()
    assert len(caplog.records) == told


def disturbed(calls: int) -> tuple[Device, IdleProbe]:
    """After each of so many calls somebody has left work for four fifths of what is waited for."""
    busy = int(0.8 * PATIENCE_S / (2 * CLEARING_US / 1e6))
    return made(*[(busy, CLEARING_US), (1, QUIET_US)] * calls)


def test_who_leaves_work_after_every_call_is_waited_for_so_long_in_all() -> None:
    """None of the waits is in vain, and 432 of them would be five minutes of a node that nobody pays for."""
    device, pace = disturbed(432)
    for _ in range(432):
        pace.wait()
    assert IN_ALL_S < device.seconds < IN_ALL_S + 1


def test_the_next_submission_is_waited_for_as_long() -> None:
    device, pace = disturbed(432)
    while pace.wait():
        pass
    pace.begin()
    before = device.seconds
    while not pace.wait():  # What the last one has left.
        pass
    assert pace.wait()
    assert device.seconds > before + 0.5 * PATIENCE_S


def test_what_is_no_longer_waited_for_is_not_the_devices_pace() -> None:
    """Or whoever used the patience up would have made the node's pace slower for everybody after."""
    device, pace = disturbed(60)
    while pace.wait():
        pass
    pace.begin()
    device.times = lasting((3, CLEARING_US), (1, QUIET_US))
    before = device.probes
    assert pace.wait()
    assert device.probes == before + 4
