from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.assignment import LanePolicy, Points
from autograder.contract import GradeResult, Lane, Verdict
from autograder.errors import ContractError
from autograder.scores import next_point, score, speed_fraction, speed_of
from tests.doubles.world import case, manifest, measurement, passed, wrong

GPU = LanePolicy(speed_points=True, r_full=1.25, r_zero=10.0)


def test_full_correctness_and_full_speed_are_all_the_points():
    scored = score(manifest(), passed(1.2), Lane.h200)
    assert (scored.correctness_points, scored.speed_points) == (60, 40)


def test_correctness_is_shared_equally_by_groups():
    result = dataclasses.replace(
        wrong(),
        cases=(case("small"), case("large", ranked=True), case("hidden 1", Verdict.wrong_answer)),
    )
    assert score(manifest(), result, Lane.h200).correctness_points == 30


def test_all_groups_give_all_points_to_the_last_digit():
    """0.7 · 3 / 3 is less than 0.7, and whoever compares would call it incomplete."""
    for groups, points in itertools.product(range(1, 25), (0.7, 1.4, 60, 0.1, 33.3)):
        result = dataclasses.replace(passed(), cases=tuple(case(f"{n}", group=f"{n}") for n in range(groups)))
        content = manifest(points=Points(correctness=points, speed=40), cases=())
        assert score(content, result, Lane.h200).correctness_points == points, f"{groups} groups, {points} points"


def test_a_group_with_a_case_that_was_not_run_does_not_pass():
    result = GradeResult(
        Verdict.runtime_error, "It raised.", (case("small", Verdict.runtime_error), case("large", None))
    )
    assert score(manifest(), result, Lane.h200).correctness_points == 0


def test_a_group_of_the_manifest_that_the_result_does_not_mention_does_not_pass():
    result = GradeResult(Verdict.compile_error, "It does not load.", ())
    scored = score(manifest(), result, Lane.h200)
    assert (scored.groups_passed, scored.groups, scored.correctness_points) == (0, 1, 0)


def test_the_cpu_lane_gives_no_speed_points():
    scored = score(manifest(), passed(0.1), Lane.cpu)
    assert scored.speed_points == 0
    assert scored.speed is not None


def test_a_submission_that_fails_one_group_gets_no_speed_points():
    result = dataclasses.replace(passed(0.5), verdict=Verdict.wrong_answer, cases=(*wrong().cases,))
    assert score(manifest(), result, Lane.h200).speed_points == 0


def test_speed_falls_by_the_logarithm_of_the_ratio():
    middle = math.sqrt(1.25 * 10.0)
    assert speed_fraction(GPU, 1.25) == 1
    assert speed_fraction(GPU, middle) == pytest.approx(0.5)
    assert speed_fraction(GPU, 10.0) == 0


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_being_faster_never_costs_points(one, other):
    slow, fast = max(one, other), min(one, other)
    assert 0 <= speed_fraction(GPU, slow) <= speed_fraction(GPU, fast) <= 1


def test_the_ratio_is_the_geometric_mean_over_ranked_cases():
    result = dataclasses.replace(
        passed(),
        cases=(case("a", ranked=True), case("b", ranked=True)),
        measurements=(measurement("a", 0.5), measurement("b", 2.0)),
    )
    speed = speed_of(result)
    assert speed is not None
    assert speed.ratio == pytest.approx(1.0)
    assert speed.low == pytest.approx(0.98)
    assert speed.time_us == pytest.approx(100)


def test_a_ranked_case_without_a_measurement_leaves_no_ratio():
    assert speed_of(dataclasses.replace(passed(), measurements=())) is None


def test_a_case_that_is_not_ranked_does_not_count_for_speed():
    result = dataclasses.replace(passed(), measurements=(measurement("large", 1.0), measurement("small", 9.0)))
    speed = speed_of(result)
    assert speed is not None
    assert speed.ratio == pytest.approx(1.0)


@pytest.mark.parametrize("ratio", [0.0, -1.0])
def test_a_ratio_that_no_measurement_can_have_is_refused(ratio):
    with pytest.raises(ContractError, match="not above zero"):
        speed_of(dataclasses.replace(passed(), measurements=(measurement("large", ratio, spread=0),)))


def test_the_next_point_says_how_much_faster_is_needed():
    nearest = next_point(manifest(), Lane.h200, 5.0)
    assert nearest is not None
    assert nearest.points == math.floor(40 * speed_fraction(GPU, 5.0)) + 1
    assert 40 * speed_fraction(GPU, nearest.ratio) == pytest.approx(nearest.points)
    assert nearest.faster == pytest.approx(5.0 / nearest.ratio)


@given(st.floats(0.1, 50))
def test_the_next_point_is_always_ahead_and_at_most_one_away(ratio):
    nearest = next_point(manifest(), Lane.h200, ratio)
    now = 40 * speed_fraction(GPU, ratio)
    if nearest is None:
        assert now == pytest.approx(40)
    else:
        assert now < nearest.points <= now + 1 + 1e-6
        assert nearest.faster > 1


def test_no_point_is_left_for_who_has_them_all_and_where_there_are_none():
    assert next_point(manifest(), Lane.h200, 1.0) is None
    assert next_point(manifest(), Lane.cpu, 5.0) is None
    assert next_point(manifest(), Lane.b200, 5.0) is None
