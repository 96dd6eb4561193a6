"""Every sample of a ranked case as it counts, the submission's above the reference's; public cases only."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.contract import Measurement
from autograder.samples import times_of

MOST_DRAWN = 400
"""Samples of each side that are drawn; of more, every k-th."""


@dataclass(frozen=True)
class Side:
    """One side's times in microseconds, in the order taken; `low` and `high` hold the middle half."""

    name: str
    times_us: tuple[float, ...]
    median_us: float
    low_us: float
    high_us: float


@dataclass(frozen=True)
class Spread:
    """Both sides of one case, of this attempt's own samples."""

    case: str
    sides: tuple[Side, Side]

    @property
    def data(self) -> dict[str, Any]:
        """What the chart is drawn from."""
        return {
            "sides": [
                {"name": side.name, "times": _thinned(side.times_us), "median": side.median_us,
                 "low": side.low_us, "high": side.high_us}
                for side in self.sides
            ]
        }  # fmt: skip


def spreads(measured: Sequence[Measurement], public: Collection[str]) -> tuple[Spread, ...]:
    """Of every ranked case in `public` that has samples; a hidden case's times would tell its size."""
    found = []
    for item in measured:
        taken = times_of(item) if item.case in public else []
        if len(taken) > 1:
            ours, reference = zip(*taken, strict=True)
            found.append(Spread(item.case, (_side("this one", ours), _side("reference", reference))))
    return tuple(found)


def _side(name: str, times: Sequence[float]) -> Side:
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return Side(name, tuple(times), middle, low, high)


def _thinned(times: Sequence[float]) -> list[float]:
    step = -(-len(times) // MOST_DRAWN)
    return [round(value, 3) for value in times[::step]]
