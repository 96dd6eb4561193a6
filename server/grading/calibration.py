"""How far past estimates missed, and how much wider or narrower the next have to be to hold what they promise.

Split conformal prediction, on each side by itself: an estimate's arms are stretched by the 90th percentile of what past
arms would have had to be stretched by. Arms are lengths in log(1 + seconds): waits are wrong by a factor, not by a
number of seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.grading.schedule import HIGH, LOW, Expected
from server.models import Forecast, Lane, Mode, Submission

PROMISED = HIGH - LOW
NEWEST = 400
"""So many of a lane's newest estimates whose result came are looked at."""
ENOUGH = 20
NARROWEST, WIDEST = 0.25, 8.0
SHORTEST_ARM = 0.05
"""About 5 %: where every draw agreed, the world may still not."""


@dataclass(frozen=True)
class Past:
    """One estimate and what came; `scale_low` and `scale_high` are what its arms had been stretched by."""

    low_s: float
    likely_s: float
    high_s: float
    scale_low: float
    scale_high: float
    came_s: float

    @property
    def was_right(self) -> bool:
        """Whether the result came inside of what was shown."""
        return self.low_s <= self.came_s <= self.high_s


@dataclass(frozen=True)
class Calibration:
    """What past estimates say about the next: the factors for its arms, and how many were right."""

    down: float = 1.0
    up: float = 1.0
    right: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """Of the past estimates, those that were right, 0 to 1."""
        return self.right / self.total if self.total else 0.0

    def apply(self, raw: Expected) -> Expected:
        """The estimate with its arms stretched."""
        likely = math.log1p(raw.likely_s)
        low = likely - self.down * _arm(raw.low_s, raw.likely_s)
        high = likely + self.up * _arm(raw.likely_s, raw.high_s)
        return Expected(max(0.0, math.expm1(low)), raw.likely_s, math.expm1(high), raw.approximate)


def calibrate(past: Sequence[Past]) -> Calibration:
    """The factors with which the past estimates would have held their promise."""
    right = sum(item.was_right for item in past)
    if len(past) < ENOUGH:
        return Calibration(right=right, total=len(past))
    return Calibration(_stretch([_down(x) for x in past]), _stretch([_up(x) for x in past]), right, len(past))


def calibrations(session: Session, lane: Lane) -> dict[Mode, Calibration]:
    """Of runs and of submissions apart: who is overtaken by whom differs."""
    query = (
        select(
            Submission.mode, Forecast.low_s, Forecast.likely_s, Forecast.high_s,
            Forecast.scale_low, Forecast.scale_high, Forecast.came_s,
        )
        .join(Submission, Submission.id == Forecast.submission_id)
        .where(Forecast.lane == lane, Forecast.came_s.is_not(None))
        .order_by(Forecast.made_at.desc())
        .limit(NEWEST)
    )  # fmt: skip
    past: dict[Mode, list[Past]] = {mode: [] for mode in Mode}
    for mode, low_s, likely_s, high_s, scale_low, scale_high, came_s in session.execute(query):
        if came_s is not None:
            past[mode].append(Past(low_s, likely_s, high_s, scale_low, scale_high, came_s))
    return {mode: calibrate(items) for mode, items in past.items()}


def _up(item: Past) -> float:
    arm = _arm(item.likely_s, item.high_s) / item.scale_high
    return (math.log1p(item.came_s) - math.log1p(item.likely_s)) / arm


def _down(item: Past) -> float:
    arm = _arm(item.low_s, item.likely_s) / item.scale_low
    return (math.log1p(item.likely_s) - math.log1p(item.came_s)) / arm


def _stretch(scores: list[float]) -> float:
    """The score that `HIGH` of them stay under, with the finite-sample correction of split conformal prediction."""
    scores.sort()
    place = min(math.ceil((len(scores) + 1) * HIGH), len(scores)) - 1
    return min(max(scores[place], NARROWEST), WIDEST)


def _arm(near_s: float, far_s: float) -> float:
    return max(math.log1p(far_s) - math.log1p(near_s), SHORTEST_ARM)
