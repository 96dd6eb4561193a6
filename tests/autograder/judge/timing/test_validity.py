"""What stands, what is measured again and what is held: every row of the table in `judge/timing/validity.py`."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from autograder import samples
from autograder.assignment import load_assignment
from autograder.contract import Batch, FindingKind, Measurement, Pair
from autograder.judge.protocol.runner_client import CallReply
from autograder.judge.rules import GPU
from autograder.judge.timing import validity
from autograder.judge.timing.aa_check import aa_check_of
from autograder.judge.timing.estimators import interval, measurement
from autograder.judge.timing.validity import (
    Batches,
    PriorAttempts,
    bound,
    findings,
    judge_measurement,
    scored_us,
    sealed_call_us,
)
from autograder.protocol import Ran

DOUBLE = load_assignment(Path(__file__).parents[3] / "fixtures" / "assignments" / "double")
RANKED = next(case for case in DOUBLE.cases if case.ranked)
CALLS, NULL_US = 20, 3000.0
AGAIN = PriorAttempts(remeasured=1)
OURS_MS, THEIRS_MS = (48.67, 40.64, 44.67, 44.69, 44.65, 48.64), (48.61, 48.64, 48.64, 58.3, 62.36, 48.65)
"""Batches of a vector add beside a noisy neighbour, as read."""


def measured(
    told_us: float = 400.0,
    *,
    real_us: float | None = None,
    theirs_us: float = 400.0,
    alone_us: float | None = None,
    reference_excess: float = 0.01,
    aa: float = 1.0,
) -> Measurement:
    """A submission that tells of `told_us` and takes `real_us`, beside a reference that takes `alone_us` alone."""
    real_us, alone_us = real_us or told_us, alone_us or theirs_us
    pairs = [Pair(told_us, 9000.0, theirs_us, 9000.0)] * 9
    alone = (Pair(alone_us * aa, 9000.0, alone_us, 9000.0),) * 4
    found = measurement(DOUBLE, RANKED, pairs, "event")
    theirs = (Batch(NULL_US + CALLS * alone_us * (1 + reference_excess), CALLS * alone_us),)
    ours = (Batch(NULL_US + CALLS * real_us * 1.01, CALLS * told_us),) * 5 + (
        Batch(2 * NULL_US + CALLS * real_us, 0.0),
    )
    taken = Batches(CALLS, (NULL_US + 40, NULL_US), ours, theirs)
    found = dataclasses.replace(found, control=aa_check_of(tuple(pairs), alone, "event", GPU.aa_tolerance))
    limit = validity.widened(alone_us, taken, GPU)
    return dataclasses.replace(found, bound=bound(scored_us(found), taken, limit))


@pytest.mark.parametrize("asked", [PriorAttempts(), AGAIN])
def test_an_honest_measurement_stands(asked: PriorAttempts) -> None:
    honest = measured()
    assert judge_measurement(honest, asked, GPU) == honest
    assert honest.bound
    assert honest.bound.bounded
    assert honest.bound.excess == pytest.approx(0.01)
    assert findings([honest]) == ()


def test_a_case_in_which_the_reference_is_slower_without_pause_is_bounded_as_well_as_the_reference() -> None:
    honest = measured(80.0, real_us=80 * 1.05, theirs_us=80.0, reference_excess=0.055)
    assert honest.bound
    assert honest.bound.excess > GPU.min_excess(80.0)
    assert honest.bound.epsilon == pytest.approx(0.07)
    assert judge_measurement(honest, AGAIN, GPU).held == ""
    forged = judge_measurement(measured(78.4, real_us=80 * 1.05, theirs_us=80.0, reference_excess=0.055), AGAIN, GPU)
    assert (forged.clock, forged.held) == ("batches", "")
    assert forged.ratio > 0.99


def test_however_slow_the_reference_is_in_batches_a_forged_twentieth_is_seen() -> None:
    for excess in (0.01, 0.03, 0.039, 0.0401, 0.08, 0.5):
        found = judge_measurement(measured(400 * 0.94, real_us=400.0, reference_excess=excess), AGAIN, GPU)
        assert found.clock == "batches"
        # Less delay than the reference has between its calls is an advantage.
        assert found.ratio > 0.99 / (1 + excess)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.94])
@pytest.mark.parametrize("asked", [PriorAttempts(), AGAIN])
def test_a_forged_clock_gains_nothing_and_accuses_nobody(share: float, asked: PriorAttempts) -> None:
    found = judge_measurement(measured(400.0 * share, real_us=400.0), asked, GPU)
    assert found.clock == "batches"
    assert found.time_us == pytest.approx(404.0)
    assert found.ratio == pytest.approx(1.0)
    assert (found.held, found.remeasure) == ("", "")
    assert findings([found]) == ()


def test_a_far_slower_submission_is_bounded_by_its_own_batches() -> None:
    forged = measured(100.0, real_us=40_000.0)
    assert forged.bound
    alone = dataclasses.replace(forged, bound=dataclasses.replace(forged.bound, reference_batches=()))
    found = judge_measurement(alone, AGAIN, GPU)
    assert (found.clock, found.held) == ("bound", "")
    assert found.ratio == pytest.approx(100.0, rel=0.01)


def test_where_nothing_is_left_of_the_references_batches_the_submissions_rank() -> None:
    forged = measured(1.0, real_us=60.0, theirs_us=30.0)
    assert forged.bound
    nothing = tuple(dataclasses.replace(one, sealed_us=NULL_US) for one in forged.bound.reference_batches)
    found = judge_measurement(
        dataclasses.replace(forged, bound=dataclasses.replace(forged.bound, reference_batches=nothing)), AGAIN, GPU
    )
    assert found.clock == "bound"
    assert found.ratio == pytest.approx(2.0, rel=0.02)


def test_the_student_is_told_what_the_difference_between_the_clocks_is() -> None:
    slow = judge_measurement(measured(1400.0, real_us=1600.0), AGAIN, GPU)
    waited = (Ran("cudaMalloc", 1, 60_000), Ran("cudaFree", 1, 90_000), Ran("cudaLaunchKernel", 1, 3000))
    traced = CallReply((), 0.0, 0.0, (), {}, (), busy_us=1385.0, waited_for=waited)
    said = validity.note(slow, traced)
    assert "1616 µs" in said
    assert "1400 µs" in said
    assert said.endswith(
        "The device is idle for 14% of the time, while your call is on the host: cudaMalloc, cudaFree."
    )
    assert validity.note(slow, None) in said
    assert validity.note(judge_measurement(measured(), AGAIN, GPU), traced) == ""


def test_the_bound_is_exact_to_epsilon() -> None:
    within, beyond = measured(400.0, real_us=400.0 * 1.049), measured(400.0, real_us=400.0 * 1.05)
    assert within.bound
    assert beyond.bound
    assert (within.bound.bounded, beyond.bound.bounded) == (True, False)


@pytest.mark.parametrize(
    ("excess", "claimed"), [(0.045, 0.5), (0.5, 0.5), (0.045, 0.0001), (0.5, 0.0001), (2.0, 0.0001)]
)
def test_a_forged_clock_gains_nothing_where_the_node_cannot_bound_the_case_either(
    excess: float, claimed: float
) -> None:
    forged = measured(400.0 * claimed / (1 + excess), real_us=400.0 * (1 + excess), reference_excess=excess)
    found = judge_measurement(forged, AGAIN, GPU)
    assert (found.clock, found.held) == ("batches", "")
    assert found.ratio > 0.99


@pytest.mark.parametrize("asked", [PriorAttempts(), AGAIN])
def test_a_case_that_the_node_cannot_bound_ranks_both_sides_by_the_sealed_clock_and_holds_nobody(
    asked: PriorAttempts,
) -> None:
    short = measured(30.0, real_us=60.0, theirs_us=30.0, reference_excess=1.02)
    found = judge_measurement(short, asked, GPU)
    assert (found.clock, found.held, found.remeasure) == ("batches", "", "")
    assert found.ratio == pytest.approx(1.0)
    assert found.bound
    assert not found.bound.bounded


def test_batches_that_a_neighbour_stretches_are_measured_again_and_stand_with_their_interval() -> None:
    """Beside processes on all cores an honest kernel was 0.83 of itself by both sides' batches (red team 21)."""
    seen = measured(400.0, real_us=1600.0, reference_excess=3.0)
    assert seen.bound
    ours, theirs = ([Batch(1000.0 * one, 0.0) for one in taken] for taken in (OURS_MS, THEIRS_MS))
    taken = Batches(28, (400.0,), tuple(ours), tuple(theirs))
    seen = dataclasses.replace(seen, bound=bound(400.0, taken, GPU.max_excess(400.0)))
    found = [judge_measurement(seen, PriorAttempts(remeasured=tries), GPU) for tries in range(3)]
    assert {one.clock for one in found} == {"batches"}
    assert [one.remeasure for one in found] == [validity.TOO_WIDE, validity.TOO_WIDE, ""]
    assert not any(one.held for one in found)
    assert found[2].ratio == pytest.approx(0.835, abs=0.001)
    assert found[2].ratio_high > 0.9
    assert found[2].time_high_us > found[2].time_us == found[2].time_low_us


def test_forging_gains_nothing_where_the_case_cannot_be_bounded() -> None:
    for told_us in (1.0, 15.0, 25.0):
        short = measured(told_us, real_us=60.0, theirs_us=30.0, reference_excess=1.02)
        assert judge_measurement(short, AGAIN, GPU).ratio >= 0.999


def test_a_slowed_reference_gains_nothing() -> None:
    slowed = measured(theirs_us=440.0, alone_us=400.0)
    found = judge_measurement(slowed, PriorAttempts(), GPU)
    assert (found.clock, found.held, found.remeasure) == ("batches", "", "")
    assert found.ratio == pytest.approx(1.0)


def test_a_neighbour_that_slows_both_sides_gets_nobody_held() -> None:
    both = measured(440.0, real_us=400.0, theirs_us=440.0, alone_us=400.0)
    first, second = judge_measurement(both, PriorAttempts(), GPU), judge_measurement(both, AGAIN, GPU)
    assert (first.held, first.remeasure) == ("", validity.UNSTEADY)
    assert (second.held, second.remeasure) == ("", "")
    assert second.ratio == pytest.approx(1.0)


def test_a_neighbour_in_half_of_the_references_turns_gets_nobody_held() -> None:
    """Read on a device that another job used meanwhile: the median of the ratios was right, that of the times not."""
    pairs = (Pair(376.0, 0, 376.0, 0),) * 5 + (Pair(415.0, 0, 415.0, 0),) * 4
    found = measurement(DOUBLE, RANKED, pairs, "event")
    alone = (Pair(376.0, 0, 376.0, 0),) * 4
    found = dataclasses.replace(found, control=aa_check_of(pairs * 2 + pairs[5:], alone, "event", GPU.aa_tolerance))
    batches = (Batch(NULL_US + CALLS * 383.0, 0.0),)
    taken = Batches(CALLS, (NULL_US,), batches, batches)
    found = dataclasses.replace(found, bound=bound(scored_us(found), taken, GPU.min_excess(400.0)))
    assert judge_measurement(found, AGAIN, GPU).held == ""


def test_a_reference_that_was_faster_beside_the_submission_holds_nobody() -> None:
    faster = measured(theirs_us=370.0, alone_us=400.0)
    first, second = judge_measurement(faster, PriorAttempts(), GPU), judge_measurement(faster, AGAIN, GPU)
    assert (first.held, first.remeasure) == ("", validity.UNSTEADY)
    assert (second.held, second.remeasure) == ("", "")
    assert second.ratio == faster.ratio


def test_a_node_on_which_the_reference_differs_from_itself_holds_nobody() -> None:
    uneven = measured(aa=1.03, alone_us=397.0)
    assert judge_measurement(uneven, PriorAttempts(), GPU).remeasure == validity.UNSTEADY
    assert judge_measurement(uneven, AGAIN, GPU).held == ""


def test_a_noisy_node_is_allowed_its_own_spread() -> None:
    pairs = (Pair(400.0, 0.0, 412.0, 0.0),) * 5
    alone = (Pair(400.0, 0.0, 400.0, 0.0),) * 5
    assert not aa_check_of(pairs, alone, "event", 0.02).agrees
    assert aa_check_of(pairs, alone, "event", 0.035).agrees


def test_a_wide_interval_is_the_nodes_fault_and_stands_after_two_tries() -> None:
    quiet = dataclasses.replace(measured(), ratio_low=0.95, ratio_high=1.05)
    assert judge_measurement(quiet, PriorAttempts(), GPU).remeasure == ""
    pairs = tuple(Pair(400.0 + 20 * (number % 3), 9000.0, 400.0, 9000.0) for number in range(8))
    assert quiet.control
    wide = dataclasses.replace(quiet, control=dataclasses.replace(quiet.control, pairs=pairs))
    told = [judge_measurement(wide, PriorAttempts(remeasured=count), GPU) for count in range(3)]
    assert [one.remeasure for one in told] == [validity.TOO_WIDE, validity.TOO_WIDE, ""]
    assert {one.held for one in told} == {""}
    assert {one.ratio for one in told} == {wide.ratio}


def test_a_node_that_others_always_disturb_is_asked_three_times() -> None:
    found = [validity.disturbed(measured(), PriorAttempts(remeasured=tries)).remeasure for tries in range(3)]
    assert found == [validity.DISTURBED, validity.DISTURBED, ""]


def test_a_time_far_below_the_best_is_measured_again_once() -> None:
    fast = measured(300.0)
    best = {RANKED.name: 400.0}
    assert judge_measurement(fast, PriorAttempts(best), GPU).remeasure == validity.TOO_FAST
    assert judge_measurement(fast, PriorAttempts(best, 1), GPU).remeasure == ""
    assert judge_measurement(measured(370.0), PriorAttempts(best), GPU).remeasure == ""


def test_below_the_floor_everybody_is_held_at_once() -> None:
    found = judge_measurement(dataclasses.replace(measured(300.0), floor_us=320.0), PriorAttempts(), GPU)
    assert found.held == validity.BELOW_FLOOR
    assert [one.kind for one in findings([found])] == [FindingKind.below_floor]


def test_forging_a_third_and_slowing_the_reference_in_another_third_is_seen_in_the_score() -> None:
    """Both medians are honest; the median of the ratios is not."""
    forged, slowed, honest = Pair(320.0, 0, 400.0, 0), Pair(400.0, 0, 480.0, 0), Pair(400.0, 0, 400.0, 0)
    pairs = (forged, slowed, honest) * 3
    found = measurement(DOUBLE, RANKED, pairs, "event")
    alone = (Pair(400.0, 0, 400.0, 0),) * 4
    found = dataclasses.replace(found, control=aa_check_of(pairs, alone, "event", GPU.aa_tolerance))
    assert found.control
    assert found.control.agrees
    assert found.time_us == 400.0
    assert found.ratio < 0.84
    batches = (Batch(NULL_US + CALLS * 404.0, 0.0),)
    taken = Batches(CALLS, (NULL_US,), batches, batches)
    assert bound(found.time_us, taken, GPU.min_excess(400.0)).bounded
    assert not bound(scored_us(found), taken, GPU.min_excess(400.0)).bounded


def test_what_the_judge_counts_is_what_anybody_recomputes_from_the_samples() -> None:
    for found in (measured(), measured(200.0, real_us=400.0), measured(theirs_us=440.0, alone_us=400.0),
                  measured(30.0, real_us=60.0, theirs_us=30.0, reference_excess=1.02)):  # fmt: skip
        counted = judge_measurement(found, PriorAttempts(), GPU)
        assert samples.pooled((counted,)).ratio == pytest.approx(counted.ratio, rel=1e-9)
        assert samples.pooled((counted,)).time_us == pytest.approx(counted.time_us, rel=1e-9)


def test_more_batches_never_make_the_bound_looser() -> None:
    noise = random.Random(3)
    batches = [Batch(NULL_US + CALLS * 400 + noise.expovariate(1 / 500), 0.0) for _ in range(12)]
    bounds = [sealed_call_us(batches[:count], (NULL_US,), CALLS) for count in range(1, 13)]
    assert bounds == sorted(bounds, reverse=True)
    assert min(bounds) >= 400.0


def test_varying_on_purpose_gains_nothing_by_the_second_stage() -> None:
    """A submission that makes its interval wide gets four times the pairs, all of them pooled: the median stays."""
    source = random.Random(7)
    honest, swinging, stages = [], [], 0
    for _ in range(200):
        quiet = [source.gauss(1.0, 0.004) for _ in range(10)]
        honest.append(sorted(quiet)[5])
        first = [source.gauss(1.0, 0.004) * source.choice((1.0, 1.4)) for _ in range(10)]
        low, high = interval(first)
        wide = high - low > GPU.max_interval_width
        stages += wide
        more = [source.gauss(1.0, 0.004) * source.choice((1.0, 1.4)) for _ in range(30)] if wide else []
        swinging.append(sorted(first + more)[len(first + more) // 2])
    assert stages > 150
    assert sum(swinging) / 200 > sum(honest) / 200
    # Not even the luckiest tenth lies below what an honest one gets.
    assert sorted(swinging)[20] > sorted(honest)[20] - 0.005
