"""Samples: what a ratio and its interval follow from, and what handing the same kernel in again can gain."""

from __future__ import annotations

import dataclasses
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.contract import AACheck, Batch, Bound, Measurement, Pair
from autograder.errors import ContractError
from autograder.samples import AttemptSamples, counted, interval, pooled, times_of

TRUE_RATIO = 1.3


def measured(pairs, clock="event", **changes):
    """A measurement of these (submission, reference) times on the event clock; its own numbers say nothing."""
    return Measurement(
        "large", clock, 9.9, 9.9, 9.9, 9.9, 9.9, 9.9, 9.9, 1.0, 1.0,
        tuple(Pair(ours, ours + 20, theirs, theirs + 20) for ours, theirs in pairs), **changes,
    )  # fmt: skip


def control(reference_us, drift, *, agrees):
    return AACheck((), reference_us, 1.0, drift, 0.02, agrees)


def attempt(source, pairs=14, ratio=TRUE_RATIO):
    """What one attempt samples: the node's hour shifts all of it, every pair scatters."""
    shift = source.gauss(0, 0.005)
    return measured([(100 * ratio * (1 + shift + source.gauss(0, 0.01)), 100.0) for _ in range(pairs)])


def test_the_ratio_is_the_median_of_the_pairwise_ratios():
    found = pooled((measured([(100, 100), (150, 100), (240, 120)]),))
    assert (found.ratio, found.time_us, found.reference_us) == (1.5, 150, 100)
    assert (found.attempts, found.pairs) == (1, 3)
    assert found.ratio_low <= found.ratio <= found.ratio_high


def test_attempts_are_put_together_pair_by_pair():
    found = pooled((measured([(100, 100)] * 3), measured([(120, 100)] * 4)))
    assert (found.ratio, found.attempts, found.pairs) == (1.2, 2, 7)


@given(
    st.lists(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=9), min_size=1, max_size=4)
)
def test_the_interval_always_holds_the_median_and_follows_from_the_samples(attempts):
    found = pooled([measured(pairs) for pairs in attempts])
    assert found.ratio_low <= found.ratio <= found.ratio_high
    assert found.time_low_us <= found.time_us <= found.time_high_us
    assert found == pooled([measured(pairs) for pairs in attempts])


def test_attempts_that_disagree_make_the_interval_hold_both():
    low, high = interval([AttemptSamples([1.0] * 20), AttemptSamples([1.1] * 20)])
    assert (low, high) == (1.0, 1.1)


def test_on_the_sealed_clock_the_sealed_times_count():
    assert times_of(measured([(100, 80)], clock="sealed")) == [(120, 100)]


def test_where_the_event_clock_was_not_believed_the_bound_counts_for_every_pair():
    bound = Bound(8, (), (), (), sealed_us=130.0, excess=0.3, epsilon=0.03, bounded=False)
    found = pooled((measured([(10, 100), (20, 100)], clock="bound", bound=bound),))
    assert (found.ratio, found.time_us) == (1.3, 130)


def by_batches(ours, theirs, pairs=9):
    """Both sides' shortest batches count, of one call each, less a null of 10 µs."""
    taken = [tuple(Batch(10.0 + one, one) for one in batches) for batches in (ours, theirs)]
    bound = Bound(1, taken[0], taken[1], (10.0,), sealed_us=min(ours), excess=0.3, epsilon=0.06, bounded=False)
    return measured([(10, 10)] * pairs, clock="batches", bound=bound)


def test_where_batches_rank_the_interval_says_how_much_the_shortest_could_have_been_another():
    same, apart = pooled((by_batches([100] * 6, [100] * 6),)), pooled((by_batches([100, 110, 120], [90, 99, 100]),))
    assert (same.ratio_low, same.ratio, same.ratio_high) == (1.0, 1.0, 1.0)
    assert apart.ratio == pytest.approx(100 / 90)
    assert apart.ratio_low <= 100 / 99 < 110 / 90 <= apart.ratio_high
    assert (apart.time_low_us, apart.time_us, apart.time_high_us) == (100, 100, 120)


def test_of_the_reference_as_many_first_batches_are_left_out_as_were_dropped():
    """The shortest of six is shorter than that of three, and nobody's ratio should be larger for it."""
    found = by_batches([100, 110, 120], [80, 90, 95, 99, 100, 101])
    bound = dataclasses.replace(found.bound, dropped=(Batch(140.0, 100.0),) * 3)
    assert pooled((found,)).ratio == pytest.approx(100 / 80)
    assert pooled((dataclasses.replace(found, bound=bound),)).ratio == pytest.approx(100 / 99)


@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(20, 1e6), min_size=1, max_size=6), st.lists(st.floats(20, 1e6), min_size=1, max_size=6)
        ),
        min_size=1,
        max_size=3,
    )
)
def test_the_interval_of_batches_holds_their_ratio(attempts):
    found = pooled([by_batches(ours, theirs) for ours, theirs in attempts])
    assert found.ratio_low <= found.ratio <= found.ratio_high
    assert found.time_low_us <= found.time_us <= found.time_high_us


@pytest.mark.parametrize(
    ("drift", "agrees", "ratio"), [(0.25, False, 1.25), (0.25, True, 1.0), (-0.2, False, 1.0)],
)  # fmt: skip
def test_a_reference_that_was_slowed_counts_with_its_time_alone(drift, agrees, ratio):
    """A reference that was faster beside the submission than alone gains nobody anything."""
    item = measured([(100, 100)] * 5, control=control(80.0, drift, agrees=agrees))
    assert pooled((item,)).ratio == ratio


@pytest.mark.parametrize("pairs", [[], [(0.0, 100)], [(100, -1.0)], [(float("inf"), 100)]])
def test_what_is_no_time_is_refused(pairs):
    with pytest.raises(ContractError):
        pooled((measured(pairs),))


@pytest.mark.parametrize("pairs", [[(1e308, 1e-10)], [(1e-300, 1e300)]])
def test_a_ratio_that_no_number_holds_is_refused(pairs):
    """One that was kept would be in its pool for ever, and no later attempt could be scored."""
    with pytest.raises(ContractError):
        pooled((measured(pairs),))


@pytest.mark.parametrize("wrong", [{"reference_batches": ()}, {"null_us": ()}, {"calls": 0}, {"calls": -8}])
def test_batches_that_bound_nothing_are_refused(wrong):
    bound = Bound(8, (Batch(100.0, 90.0),), (Batch(90.0, 90.0),), (1.0,), 12.0, 0.3, 0.03, bounded=False)
    item = measured([(10, 100)], clock="batches", bound=dataclasses.replace(bound, **wrong))
    with pytest.raises(ContractError):
        pooled((item,))


def test_a_pool_is_of_one_case():
    with pytest.raises(ContractError, match="one case"):
        pooled((measured([(1, 1)]), dataclasses.replace(measured([(1, 1)]), case="small")))


def test_a_measurement_with_the_pools_numbers_keeps_its_own_samples():
    own = measured([(100, 100)])
    shown = counted(own, pooled((own, measured([(300, 100)] * 3))))
    assert (shown.ratio, shown.pairs) == (3.0, own.pairs)


def gains(resubmissions, students=60):
    """Mean gain in the ratio (below 0 is better than the truth) of three policies, over simulated students.

    Returns:
        `best`: no pool, the best of all counts. `pool`: all samples count. `stopped`: all samples count, and a student
        who sees the pool's median after every attempt stops at its lowest; then it is confirmed by two attempts.
    """
    found = {"best": [], "pool": [], "stopped": []}
    for student in range(students):
        source = random.Random(student)
        attempts = [[ours / theirs for ours, theirs in times_of(attempt(source))] for _ in range(resubmissions + 2)]
        drawn, confirming = attempts[:resubmissions], attempts[resubmissions:]
        single = [statistics.median(samples) for samples in drawn]
        running = [statistics.median([n for samples in drawn[: end + 1] for n in samples]) for end in range(len(drawn))]
        stop = running.index(min(running)) + 1
        kept = [n for samples in [*drawn[:stop], *confirming] for n in samples]
        found["best"].append(min(single) / TRUE_RATIO - 1)
        found["pool"].append(running[-1] / TRUE_RATIO - 1)
        found["stopped"].append(statistics.median(kept) / TRUE_RATIO - 1)
    return {name: statistics.mean(values) for name, values in found.items()}


def test_handing_the_same_kernel_in_a_hundred_times_gains_nothing():
    """Without the pool the luckiest of a hundred counts: the bite of this test."""
    found = gains(100)
    assert found["best"] < -0.008
    assert abs(found["pool"]) < 0.001
    # Whoever stops at the luckiest moment keeps a part of one draw's scatter, a fifth of what the best of all would be.
    assert found["stopped"] > found["best"] / 4
