"""Late days go where the student has most of them: held against every way of spending them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.gradebook.latedays import Answered, Candidate, Counted, LatePolicy, spend

POINTS = st.integers(0, 20).map(lambda halves: halves / 2)
CANDIDATE = st.builds(Candidate, st.integers(0, 99), POINTS, st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0]))
POLICY = st.builds(LatePolicy, st.integers(0, 4), st.none() | st.integers(0, 3), st.sampled_from([0.0, 0.1, 0.5, 1.0]))


def on_time(key: int, points: float) -> Candidate:
    return Candidate(key, points, 0)


def keys(counted: Sequence[Counted | None]) -> list[int | None]:
    return [one.candidate.key if one else None for one in counted]


def charges(counted: Sequence[Counted | None]) -> list[int]:
    return [one.charged if one else 0 for one in counted]


def total(counted: Sequence[Counted | None]) -> float:
    return sum(one.points * one.candidate.weight for one in counted if one)


def every_way(policy: LatePolicy, assignments: Sequence[Sequence[Candidate]]) -> float:
    """The most that can be had, by trying everything."""
    ways = [
        [
            (
                charged,
                candidate.weight * candidate.points * max(0.0, 1 - policy.penalty * (candidate.days_late - charged)),
            )
            for candidate in candidates
            for charged in range(candidate.days_late + 1)
            if policy.most_each is None or charged <= policy.most_each
        ]
        or [(0, 0.0)]
        for candidates in assignments
    ]
    allowed = (way for way in itertools.product(*ways) if sum(charged for charged, _ in way) <= policy.days)
    return max(sum(points for _, points in way) for way in allowed)


@given(policy=POLICY, assignments=st.lists(st.lists(CANDIDATE, max_size=3), max_size=4))
def test_no_other_way_of_spending_them_is_worth_more(policy: LatePolicy, assignments: list[list[Candidate]]) -> None:
    counted = spend(policy, assignments)
    assert [one is None for one in counted] == [not candidates for candidates in assignments]
    assert all(one.candidate in candidates for one, candidates in zip(counted, assignments, strict=True) if one)
    assert sum(charges(counted)) <= policy.days
    assert policy.most_each is None or max(charges(counted), default=0) <= policy.most_each
    assert total(counted) == pytest.approx(every_way(policy, assignments), abs=1e-5)


@given(policy=POLICY, assignments=st.lists(st.lists(CANDIDATE, max_size=3), max_size=4), extra=CANDIDATE)
def test_handing_in_again_never_hurts(policy: LatePolicy, assignments: list[list[Candidate]], extra: Candidate) -> None:
    with_extra = [[*assignments[0], extra], *assignments[1:]] if assignments else [[extra]]
    assert total(spend(policy, with_extra)) >= total(spend(policy, assignments)) - 1e-5


def test_the_days_go_where_they_are_worth_most() -> None:
    first = [on_time(1, 2), Candidate(2, 9, 2)]
    second = [on_time(3, 8), Candidate(4, 10, 2)]
    counted = spend(LatePolicy(days=2), [first, second])
    assert (keys(counted), charges(counted)) == ([2, 3], [2, 0])


def test_an_on_time_submission_that_is_as_good_uses_no_day() -> None:
    counted = spend(LatePolicy(days=3), [[Candidate(2, 10, 1), on_time(1, 10)]])
    assert (keys(counted), charges(counted)) == ([1], [0])


def test_of_equals_the_first_counts() -> None:
    assert keys(spend(LatePolicy(days=0), [[on_time(7, 5), on_time(8, 5)]])) == [7]


def test_what_is_late_beyond_the_days_costs_its_share() -> None:
    counted = spend(LatePolicy(days=1, penalty=0.25), [[Candidate(1, 8, 3)]])
    assert counted == [Counted(Candidate(1, 8, 3), 1, 4.0)]


def test_a_submission_whose_points_are_all_lost_still_counts_as_handed_in() -> None:
    assert spend(LatePolicy(days=0), [[Candidate(1, 8, 1)]]) == [Counted(Candidate(1, 8, 1), 0, 0.0)]


def test_no_day_is_spent_where_it_brings_nothing() -> None:
    assert charges(spend(LatePolicy(days=5), [[Candidate(1, 0, 2)], [Candidate(2, 4, 0)]])) == [0, 0]


@pytest.mark.parametrize(
    "wrong", [{"days": -1}, {"days": 1, "most_each": -1}, {"days": 1, "penalty": 1.5}, {"days": 1, "penalty": -0.1}]
)
def test_a_policy_that_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"late days|penalty"):
        LatePolicy(**wrong)  # type: ignore[arg-type]


def test_what_is_on_time_loses_nothing_not_even_by_rounding() -> None:
    answered = tuple(Answered(points, 0) for points in (0.1, 0.2, 0.7))
    candidate = Candidate(1, 49.63, 0, answered=answered)
    (counted,) = spend(LatePolicy(0, penalty=0.2), [[candidate]])
    assert counted
    assert counted.points == candidate.on_time
