"""The canary: a golden kernel measured beside itself. Its ratio has to be 1, its time what it was; the rest is noise.

How far repeated measurements lie apart is the node's noise floor. It is published with every report, and the judge is
told it: what it may take for a difference begins above it.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass

from autograder.contract import Calibration, Lane, Measurement
from worker.known import KnownJobs, Outcome

KEPT = 20
"""Measurements that the noise floor is of, the latest ones."""
MOST_RATIO = 0.02
"""How far the ratio of the golden kernel with itself may be from 1 (design §4: the A/A block's bound)."""
MOST_TIME = 0.10
"""How far its time may be from the median of those before: clocks wander, a sick GPU is slow."""
TIMED_LANES = frozenset(Lane) - {Lane.cpu}
"""On the CPU lane times are an interpreter's, on a machine with others: there it has to be right, and that is all."""


@dataclass(frozen=True)
class Song:
    """One measurement of the golden kernel; `trouble` says what is wrong with it."""

    trouble: str
    measurement: Measurement | None = None


class Canary:
    """Measures the golden kernel, and remembers how it was."""

    def __init__(self, jobs: KnownJobs) -> None:
        self._jobs = jobs
        self._sung: deque[Measurement] = deque(maxlen=KEPT)
        self._at = 0.0

    def sing_again(self) -> Song:
        """Measure it, and if something is wrong, once more: a measurement that asks to be repeated is no illness yet.

        Raises:
            HandedBackError: the node is stopped meanwhile.
        """
        song = self.sing()
        return self.sing() if song.trouble else song

    def sing(self) -> Song:
        """Measure it once.

        Raises:
            HandedBackError: the node is stopped meanwhile.
        """
        song = self._heard(self._jobs.golden())
        if not song.trouble and song.measurement is not None:
            self._sung.append(song.measurement)
            self._at = time.time()
        return song

    def calibration(self) -> Calibration | None:
        """The noise floor; `None` before it was measured."""
        if not self._sung:
            return None
        ratios, times = [one.ratio for one in self._sung], [one.time_us for one in self._sung]
        return Calibration(
            at=self._at,
            lane=self._jobs.lane,
            gradings=len(ratios),
            case=self._sung[-1].case,
            ratio=round(statistics.median(ratios), 6),
            ratio_spread=round(spread(ratios), 6),
            time_us=round(statistics.median(times), 3),
            time_spread=round(spread(times), 6),
        )

    def _heard(self, outcome: Outcome) -> Song:
        if outcome.result is None or not outcome.passed:
            return Song(str(outcome))
        if len(outcome.result.measurements) != 1:
            return Song(f"it was measured {len(outcome.result.measurements)} times instead of once")
        measured = outcome.result.measurements[0]
        return Song(self._trouble(measured, outcome.result.remeasure), measured)

    def _trouble(self, measured: Measurement, again: str) -> str:
        if self._jobs.lane not in TIMED_LANES:
            return ""
        if again:
            return again
        if abs(measured.ratio - 1) > MOST_RATIO:
            return f"its ratio with itself is {measured.ratio:.4f}"
        usual = statistics.median(one.time_us for one in self._sung) if self._sung else measured.time_us
        if abs(measured.time_us / usual - 1) > MOST_TIME:
            return f"it took {measured.time_us:.1f} µs, and {usual:.1f} µs before"
        return ""


def spread(numbers: list[float]) -> float:
    """The largest distance from the median, relative to it."""
    middle = statistics.median(numbers)
    return max(abs(number / middle - 1) for number in numbers)
