"""How a student's late days are spent: pure.

A course gives each student a number of late days for the term. They are charged for the submissions that count and for
nothing else, and always so that the student has the most points in the end: which submission counts in one assignment
and where the days go is one decision over all of them. A day that nothing is left for costs a share of the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_UNIT = 1_000_000
"""Points are compared in millionths: sums of floats differ by their order."""


@dataclass(frozen=True)
class LatePolicy:
    """What lateness costs in a course.

    Attributes:
        days: late days of a student for the whole term.
        most_each: how many of them one assignment can use; `None`: all.
        penalty: the share of the points, 0 to 1, that each late day costs that no late day is charged for.
    """

    days: int
    most_each: int | None = None
    penalty: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.days < 0 or (self.most_each is not None and self.most_each < 0):
            raise ValueError("late days cannot be fewer than none")
        if not 0 <= self.penalty <= 1:
            raise ValueError("a penalty is a share of the points, 0 to 1")


@dataclass(frozen=True)
class Answered:
    """Points of the same assignment that are no submission's, such as a quiz answer's, and how late they came."""

    points: float
    days_late: int


@dataclass(frozen=True)
class Candidate:
    """A submission that could count: what it would be worth on time, how late it is, and what its points weigh.

    Attributes:
        answered: what counts beside it, whichever submission it is. The days that are charged hold for all of the
            assignment, as if it had been due so much later.
    """

    key: int
    points: float
    days_late: int
    weight: float = 1.0
    answered: tuple[Answered, ...] = ()

    @property
    def most_late(self) -> int:
        """More days than these bring nothing."""
        return max([self.days_late, *(one.days_late for one in self.answered)])

    @property
    def on_time(self) -> float:
        """All its points before lateness."""
        # In the order of `_left`: floats added in another one would differ in a last digit, which would read as late.
        return sum([self.points, *(one.points for one in self.answered)])


@dataclass(frozen=True)
class Counted:
    """The submission that counts in one assignment.

    Attributes:
        charged: late days that it uses.
        points: what is left of its points; never below 0.
    """

    candidate: Candidate
    charged: int
    points: float


def spend(policy: LatePolicy, assignments: Sequence[Sequence[Candidate]]) -> list[Counted | None]:
    """The submission that counts in each assignment, so that all of them together are worth most.

    Among equals the one that uses fewer days is taken, then the one that stands first in its assignment. An assignment
    without candidates has `None`. Late days can be worth keeping only where nothing is late, so none is spent in vain.
    """
    options = [_options(policy, candidates) for candidates in assignments]
    # worth[d]: the most that the assignments so far come to with at most d days charged.
    worth, chosen = [0] * (policy.days + 1), []
    for choices in options:
        best = [_best(choices, worth, days) for days in range(policy.days + 1)]
        chosen.append(best)
        if choices:
            worth = [_after(option, worth, days) for days, option in enumerate(best) if option is not None]
    return _walk_back(chosen, policy.days)


def _options(policy: LatePolicy, candidates: Sequence[Candidate]) -> list[Counted]:
    """For every number of days charged what is worth most, fewest days first, without those that bring nothing."""
    most = policy.days if policy.most_each is None else min(policy.days, policy.most_each)
    found: dict[int, Counted] = {}
    for candidate in candidates:
        for charged in range(min(most, candidate.most_late) + 1):
            option = Counted(candidate, charged, _left(policy, candidate, charged))
            if charged not in found or _rank(option) > _rank(found[charged]):
                found[charged] = option
    kept: list[Counted] = []
    for _, option in sorted(found.items()):
        if not kept or _worth(option) > _worth(kept[-1]):
            kept.append(option)
    return kept


def _left(policy: LatePolicy, candidate: Candidate, charged: int) -> float:
    """Of all its points, what lateness leaves when so many days are charged."""
    parts = (Answered(candidate.points, candidate.days_late), *candidate.answered)
    return sum(part.points * max(0.0, 1 - policy.penalty * max(0, part.days_late - charged)) for part in parts)


def _worth(option: Counted) -> int:
    return round(option.points * option.candidate.weight * _UNIT)


def _rank(option: Counted) -> tuple[int, int]:
    """Among those that use as many days; where the points weigh nothing, still the one with most of them."""
    return _worth(option), round(option.points * _UNIT)


def _after(option: Counted, worth: Sequence[int], days: int) -> int:
    return worth[days - option.charged] + _worth(option)


def _best(choices: Sequence[Counted], worth: Sequence[int], days: int) -> Counted | None:
    within = [option for option in choices if option.charged <= days]
    # `max` keeps the first of equals, and the first charges the fewest days.
    return max(within, key=lambda option: _after(option, worth, days), default=None)


def _walk_back(chosen: Sequence[Sequence[Counted | None]], days: int) -> list[Counted | None]:
    counted: list[Counted | None] = []
    for best in reversed(chosen):
        option = best[days]
        counted.append(option)
        days -= option.charged if option else 0
    return counted[::-1]
