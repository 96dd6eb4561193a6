"""The event clock against the sealed one: what is forged is found, what is honest is not."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from autograder.assignment import load_assignment
from autograder.contract import FindingKind, Measurement, Pair
from autograder.judge.clocks import MARGIN, disagreements, lower_bound, missing_us
from autograder.judge.measure import measurement

DOUBLE = load_assignment(Path(__file__).parents[2] / "fixtures" / "assignments" / "double")
RANKED = next(case for case in DOUBLE.cases if case.ranked)
PAIRS = 25


def measured(ours_us: float, theirs_us: float, told_us: float, clock: str = "event", seed: int = 1) -> Measurement:
    """Calls of so many microseconds in exchanges of 1.7 ms that vary by 0.3 ms; the submission tells of `told_us`."""
    noise = random.Random(seed)

    def sealed(us: float) -> float:
        return us + 1700 + noise.uniform(-300, 300)

    pairs = [Pair(told_us, sealed(ours_us), theirs_us, sealed(theirs_us)) for _ in range(PAIRS)]
    return measurement(DOUBLE, RANKED, pairs, clock)


@pytest.mark.parametrize("ours_us", [50.0, 374.0, 3000.0, 9000.0])
@pytest.mark.parametrize("theirs_us", [374.0, 3000.0])
def test_an_honest_clock_agrees_however_fast_or_slow(ours_us: float, theirs_us: float) -> None:
    found = [measured(ours_us, theirs_us, ours_us, seed=seed) for seed in range(40)]
    assert disagreements(found) == ()


@pytest.mark.parametrize("told_us", [0.0, 1.0, 300.0])
def test_a_clock_that_tells_of_a_fraction_is_found(told_us: float) -> None:
    found = disagreements([measured(1000.0, 1000.0, told_us)])
    assert [one.kind for one in found] == [FindingKind.clock_disagreement]
    assert found[0].evidence["case"] == RANKED.name


def test_the_margin_is_that_of_the_reference() -> None:
    exact = [Pair(100.0, 1100.0, 100.0, 1100.0)] * PAIRS
    within = [Pair(100.0 - 90 * MARGIN, 1100.0, 100.0, 1100.0)] * PAIRS
    beyond = [Pair(100.0 - 110 * MARGIN, 1100.0, 100.0, 1100.0)] * PAIRS
    missing = [missing_us(measurement(DOUBLE, RANKED, pairs, "event")) for pairs in (exact, within, beyond)]
    assert [value > 0 for value in missing] == [False, False, True]


@pytest.mark.parametrize(("count", "rank"), [(1, 0), (13, 0), (14, 1), (25, 4), (100, 32)])
def test_the_bound_is_the_smallest_sample_that_chance_allows(count: int, rank: int) -> None:
    samples = [float(number) for number in range(1, count + 1)]
    assert lower_bound(samples[::-1]) == (rank or -math.inf)


def test_where_the_sealed_clock_ranks_there_is_nothing_to_compare() -> None:
    assert disagreements([measured(1000.0, 1000.0, 0.0, clock="sealed")]) == ()
