"""Paired times and their intervals."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.assignment import load_assignment
from autograder.contract import Pair, Verdict
from autograder.judge.correctness.checker import CallResult
from autograder.judge.protocol.runner_client import CallReply
from autograder.judge.timing.estimators import interval, measurement
from autograder.judge.timing.paired_timing import timed_pairs

DOUBLE = load_assignment(Path(__file__).parents[3] / "fixtures" / "assignments" / "double")
RANKED = next(case for case in DOUBLE.cases if case.ranked)
samples = st.lists(st.floats(min_value=0.01, max_value=1e6), min_size=1, max_size=40)


def timed(us: float) -> CallResult:
    return CallResult(Verdict.passed, "", finished=CallReply((), us, us / 2, (), {}, ()))


@given(samples)
def test_an_interval_holds_the_median_and_lies_within_the_samples(values: list[float]) -> None:
    low, high = interval(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


@given(samples)
def test_an_interval_follows_from_its_samples(values: list[float]) -> None:
    assert interval(values) == interval(values)


def test_equal_samples_have_an_interval_of_no_width() -> None:
    assert interval([2.0] * 7) == (2.0, 2.0)


def test_one_outlier_moves_neither_median_nor_interval_far() -> None:
    low, high = interval([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 50.0, 1.0, 1.01, 1.0, 0.99])
    assert 0.97 < low < high < 1.1


def test_pairs_are_taken_in_the_order_a_b_b_a_after_a_warm_up() -> None:
    order: list[str] = []

    def call(name: str, us: float) -> CallResult:
        order.append(name)
        return timed(us)

    last, pairs = timed_pairs(lambda: call("A", 3), lambda: call("B", 2), 4)
    assert last.passed
    assert pairs == (Pair(1.5, 3, 1, 2),) * 4
    assert "".join(order) == "BA" + "ABBA" * 2


@pytest.mark.parametrize(("failing", "kept"), [(0, 0), (1, 0), (4, 3)])
def test_a_timed_call_that_fails_ends_the_measuring(failing: int, kept: int) -> None:
    wrong = CallResult(Verdict.wrong_answer, "no")
    answers = [timed(1.0)] * failing + [wrong] + [timed(1.0)] * 9
    calls = iter(answers)
    last, pairs = timed_pairs(lambda: next(calls), lambda: timed(1.0), 7)
    assert last is wrong
    assert len(pairs) == kept


def test_a_measurement_is_the_median_of_the_pairwise_ratios() -> None:
    pairs = [Pair(1, ours, 1, theirs) for ours, theirs in [(30, 10), (20, 10), (40, 10), (10, 10), (10, 5)]]
    found = measurement(DOUBLE, RANKED, pairs, "sealed")
    assert (found.ratio, found.time_us, found.reference_us, found.clock) == (2.0, 20.0, 10.0, "sealed")
    assert found.ratio_low <= found.ratio <= found.ratio_high
    assert found.time_low_us <= found.time_us <= found.time_high_us
    assert len(found.pairs) == 5
    assert (found.flops, found.bytes_moved) == (64 * 128, 2 * 64 * 128 * 4 + 4 * 64)


@pytest.mark.parametrize(("clock", "ratio"), [("event", 3.0), ("sealed", 1.5)])
def test_the_lane_says_which_clock_ranks(clock: str, ratio: float) -> None:
    pairs = [Pair(submission_event_us=30, submission_sealed_us=60, reference_event_us=10, reference_sealed_us=40)] * 3
    found = measurement(DOUBLE, RANKED, pairs, clock)
    assert (found.clock, found.ratio) == (clock, ratio)
    assert (found.time_us, found.reference_us) == ((30, 10) if clock == "event" else (60, 40))
