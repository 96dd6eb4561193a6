"""Points, by the formula of the design: pure functions of the manifest and one result.

    points = correctness · groups passed / groups + speed · s(r)
    s(r)   = 1 for r ≤ r_full, 0 for r ≥ r_zero, between them linear in ln r

`r` is submission / reference, paired, the geometric mean over the ranked cases of the medians over all pooled samples
(`autograder.samples`). A lane without speed points gives none; where no lane of a course gives them, the requirements
that are counted (`autograder.counters`) give them instead of `r`, each its own. The server scores with this, and a
receipt is checked with it anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from autograder import counters
from autograder.assignment import Assignment, LanePolicy
from autograder.contract import CaseResult, GradeResult, Lane, Measurement, Verdict
from autograder.errors import ContractError
from autograder.samples import PooledCase

FORMULA_VERSION = 3
"""Raised when the formula changes; `ladder admin rescore` then recomputes grades from stored samples.

2: pooled. 3: where both sides' batches rank, the interval is theirs."""


@dataclass(frozen=True)
class Speed:
    """How fast a submission is, over its ranked cases: geometric means.

    Attributes:
        ratio, low, high: submission / reference with its interval.
        time_us: of the submission.
    """

    ratio: float
    low: float
    high: float
    time_us: float


@dataclass(frozen=True)
class Score:
    """What a result is worth. `speed_points` waits for staff where the result is held."""

    correctness_points: float
    speed_points: float
    groups_passed: int
    groups: int
    speed: Speed | None


@dataclass(frozen=True)
class NextPoint:
    """How far the next whole point is.

    Attributes:
        points: speed points it would be then.
        ratio: to the reference that gives them.
        faster: how many times faster than now that is.
    """

    points: float
    ratio: float
    faster: float


def score(assignment: Assignment, result: GradeResult, lane: Lane, *, counted: bool = False) -> Score:
    """What the result is worth on this lane.

    Args:
        counted: counters give the speed points, as no lane of the course gives them for times.

    Raises:
        ContractError: a measurement holds a number that no measurement can have.
    """
    groups = group_results(assignment, result, lane)
    passed = sum(groups.values())
    speed = speed_of(result)
    policy = assignment.policy(lane)
    complete = result.verdict is Verdict.passed and passed == len(groups) > 0
    fraction = speed_fraction(policy, speed.ratio) if complete and policy and speed else 0.0
    by_counters = counters.points_of(result.requirements) if complete and counted else 0.0
    return Score(
        correctness_points=correctness_of(assignment.points.correctness, passed, len(groups)),
        speed_points=assignment.points.speed * fraction + by_counters,
        groups_passed=passed,
        groups=len(groups),
        speed=speed,
    )


def correctness_of(points: float, passed: int, groups: int) -> float:
    """Points for so many of the groups; none where there are none."""
    # In this order all groups give all points to the last digit: what is incomplete is told by its points.
    return points * (passed / groups) if groups else 0.0


def group_results(assignment: Assignment, result: GradeResult, lane: Lane) -> dict[str, bool]:
    """Every correctness group, and whether all its cases passed; a case that was not run did not."""
    groups = {case.group: False for case in assignment.cases_for(lane)}
    by_group: dict[str, list[CaseResult]] = {}
    for case in result.cases:
        by_group.setdefault(case.group, []).append(case)
    for name, cases in by_group.items():
        groups[name] = all(case.verdict is Verdict.passed for case in cases)
    return groups


def speed_of(result: GradeResult) -> Speed | None:
    """Its speed; `None` unless it passed and every ranked case was measured."""
    ranked = [case.name for case in result.cases if case.ranked]
    measured = {measurement.case: measurement for measurement in result.measurements}
    for measurement in result.measurements:
        _check(measurement)
    if result.verdict is not Verdict.passed or not ranked or any(name not in measured for name in ranked):
        return None
    return speed_over([measured[name] for name in ranked])


def speed_over(cases: Collection[Measurement | PooledCase]) -> Speed:
    """The geometric mean over ranked cases."""
    return Speed(
        ratio=_geometric_mean(item.ratio for item in cases),
        # The ends of the intervals together are never narrower than the interval of the mean.
        low=_geometric_mean(item.ratio_low for item in cases),
        high=_geometric_mean(item.ratio_high for item in cases),
        time_us=_geometric_mean(item.time_us for item in cases),
    )


def _check(item: Measurement) -> None:
    numbers = (item.ratio, item.ratio_low, item.ratio_high, item.time_us, item.reference_us)
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        raise ContractError(f"case {item.case!r} was measured with a time or a ratio that is not above zero")
    if item.ratio_low > item.ratio_high:
        raise ContractError(f"case {item.case!r} was measured with an interval that ends before it begins")


def _geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs))


def speed_fraction(policy: LanePolicy, ratio: float) -> float:
    """The share of the speed points that this ratio earns, from 0 to 1."""
    if not policy.speed_points or ratio >= policy.r_zero:
        return 0.0
    if ratio <= policy.r_full:
        return 1.0
    return (math.log(policy.r_zero) - math.log(ratio)) / (math.log(policy.r_zero) - math.log(policy.r_full))


def next_point(assignment: Assignment, lane: Lane, ratio: float, step: float = 1.0) -> NextPoint | None:
    """How much faster the next whole speed point is; `None` where the lane gives none, or none is left.

    Args:
        step: the next multiple of so many points instead.
    """
    policy, most = assignment.policy(lane), assignment.points.speed
    if policy is None or not policy.speed_points or most <= 0:
        return None
    now = most * speed_fraction(policy, ratio)
    # A hair above a whole point counts as that point.
    points = min((math.floor(now / step + 1e-9) + 1.0) * step, most)
    if points <= now + 1e-9:
        return None
    needed = math.exp(math.log(policy.r_zero) - points / most * (math.log(policy.r_zero) - math.log(policy.r_full)))
    return NextPoint(points=points, ratio=needed, faster=ratio / needed)
