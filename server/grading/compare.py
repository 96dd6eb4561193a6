"""What a regrade found against what counts: why they differ, which of them would count, what is kept. Pure.

Two measurements of one kernel differ. So where the intervals of two speeds overlap, the difference is noise, and of
the points the better ones stand. Nothing is lowered unless staff declared that a mistake is corrected, and then by what
changed, never by noise: the speed before, worth what it is worth now, is the least.
"""

from __future__ import annotations

from dataclasses import dataclass

from autograder.contract import Verdict
from autograder.scores import Speed
from server.models import Why

CLOSE = 1e-9
"""Points, and shares of a ratio, that differ by less are the same."""


@dataclass(frozen=True)
class Stand:
    """What a submission has, or would have, whatever its review is.

    Attributes:
        share: of the points for correctness, from 0 to 1.
        speed_points: by the formula, or what was kept above it.
        speed: where it has one.
    """

    verdict: Verdict
    share: float
    correctness_points: float
    speed_points: float
    speed: Speed | None = None

    @property
    def points(self) -> float:
        """All of them."""
        return self.correctness_points + self.speed_points


@dataclass(frozen=True)
class Terms:
    """What is compared by.

    Attributes:
        same_tests: both were graded by the same tests, cases and reference.
        speed_points_now: what the speed before is worth by the proposal's formula, points and tiers.
        correctness_points_now: the same of its correctness.
        may_lower: staff declared that a mistake is corrected.
        same_samples: nothing was measured: a difference is the formula's, and none of it noise.
    """

    same_tests: bool
    speed_points_now: float = 0.0
    correctness_points_now: float = 0.0
    may_lower: bool = False
    same_samples: bool = False


@dataclass(frozen=True)
class Decision:
    """What applying would do.

    Attributes:
        moves: what was found counts from then on; otherwise what counted goes on.
        speed_floor: speed points that are kept although the formula gives fewer.
        points: what it would have, whatever its review is.
    """

    why: Why
    moves: bool
    speed_floor: float | None
    points: float


def decide(before: Stand | None, found: Stand, terms: Terms) -> Decision:
    """Compare them."""
    if before is None:
        return Decision(Why.first_result, moves=True, speed_floor=None, points=found.points)
    why = why_differs(before, found, terms)
    floor = _noise_floor(before, found, terms)
    points = found.correctness_points + max(found.speed_points, floor or 0.0)
    if points >= before.points - CLOSE:
        moves = not terms.same_tests or points > before.points + CLOSE
        return Decision(why, moves, floor if moves else None, points if moves else before.points)
    if terms.may_lower:
        return Decision(why, moves=True, speed_floor=floor, points=points)
    if terms.same_tests or _is_worse(before, found):
        return Decision(why, moves=False, speed_floor=None, points=before.points)
    # It stands by the new tests from now on; its points are not lowered.
    kept = before.points - found.correctness_points
    return Decision(why, moves=True, speed_floor=kept, points=before.points)


def why_differs(before: Stand, found: Stand, terms: Terms) -> Why:
    """The one reason that says most."""
    if before.verdict is not found.verdict or abs(before.share - found.share) > CLOSE:
        return Why.verdict_changed if terms.same_tests else Why.tests_changed
    if terms.same_samples:
        return Why.unchanged if abs(found.points - before.points) <= CLOSE else Why.points_changed
    if not _same_speed(before.speed, found.speed):
        return Why.speed_changed if terms.same_tests else Why.tests_changed
    if abs(terms.correctness_points_now + terms.speed_points_now - before.points) > CLOSE:
        return Why.points_changed
    return Why.within_noise if _differ(before.speed, found.speed) else Why.unchanged


def overlap(one: Speed, other: Speed) -> bool:
    """Whether their intervals have a point in common: one may be as fast as the other."""
    return one.low <= other.high and other.low <= one.high


def _same_speed(one: Speed | None, other: Speed | None) -> bool:
    if one is None or other is None:
        return one is other
    return overlap(one, other)


def _differ(one: Speed | None, other: Speed | None) -> bool:
    return one is not None and other is not None and abs(one.ratio - other.ratio) > CLOSE * one.ratio


def _noise_floor(before: Stand, found: Stand, terms: Terms) -> float | None:
    """The speed before is no worse than noise: it keeps what it is worth now, where that is more."""
    if terms.same_samples:
        return None
    noise = before.speed is not None and found.speed is not None and overlap(before.speed, found.speed)
    keeps = noise and not _is_worse(before, found) and terms.speed_points_now > found.speed_points + CLOSE
    return terms.speed_points_now if keeps else None


def _is_worse(before: Stand, found: Stand) -> bool:
    passed = before.verdict is Verdict.passed and found.verdict is not Verdict.passed
    return passed or found.share < before.share - CLOSE
