"""How long the last hours before a due date would be, for staff who set it: pure arithmetic, a moment's work.

It knows of the queue only what matters most: one place per student, kept when a newer submission takes over, and what
was superseded runs when nothing else waits. `scripts/surge.py` replays the same arrivals through the real code.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from server.surge.arrivals import HOUR_S, HOURS, PER_STUDENT, Arrival, arrivals

SEEDS = range(5)


@dataclass(frozen=True)
class Service:
    """What one submission costs a slot.

    Attributes:
        check_s: times of the first part, or of the whole where a lane does not measure apart.
        measure_s: of the second part; empty where there is none.
        passing: the share of submissions that come to the second part.
        measured: the times are measured; else they are a guess.
    """

    check_s: Sequence[float]
    measure_s: Sequence[float] = ()
    passing: float = 0.6
    measured: bool = True

    @property
    def mean_s(self) -> float:
        """Of a whole submission."""
        more = self.passing * statistics.fmean(self.measure_s) if self.measure_s else 0.0
        return statistics.fmean(self.check_s) + more

    def draw(self, chosen: random.Random) -> float:
        """One submission's."""
        more = chosen.choice(self.measure_s) if self.measure_s and chosen.random() < self.passing else 0.0
        return chosen.choice(self.check_s) + more


@dataclass(frozen=True)
class Expectation:
    """What the due date would be like: waits from upload to result, and until the last one has its result."""

    students: int
    submissions: int
    mean_s: float
    slots: int
    p50_s: float
    p95_s: float
    max_s: float
    drained_s: float
    measured: bool

    def sentence(self, lane: str) -> str:
        """Say it: `300 students × 4.1 × 12 s on 1 slot of the H200 lane: expect waits of up to …`."""
        each = self.submissions / max(1, self.students)
        guess = "" if self.measured else " (a guess: nothing was graded yet)"
        slots = "1 slot" if self.slots == 1 else f"{self.slots} slots"
        students = "1 student" if self.students == 1 else f"{self.students:,} students"
        head = f"{students} × {each:.2g} × {self.mean_s:.2g} s{guess} on {slots} of the {lane} lane"
        if not self.slots:
            return f"{head}: no node is in service, so nothing would be graded."
        if not self.students:
            return f"No student is in the course yet, so nobody would wait on the {lane} lane."
        return (
            f"{head}: expect waits of up to {_minutes(self.max_s)} at the due date (median {_minutes(self.p50_s)}); "
            f"all results are out {_minutes(self.drained_s)} after it."
        )


def expectation(
    *, students: int, slots: int, service: Service, per_student: float = PER_STUDENT, seeds: Sequence[int] = SEEDS
) -> Expectation:
    """The mean over a few seeds; the longest wait is the longest of all."""
    submissions = round(students * per_student)
    runs = [_run(arrivals(seed, students=students, per_student=per_student), slots, service, seed) for seed in seeds]
    runs = [run for run in runs if run[0]]
    waits = sorted(wait for run, _ in runs for wait in run)
    return Expectation(
        students, submissions, service.mean_s, slots,
        p50_s=_percentile(waits, 0.5), p95_s=_percentile(waits, 0.95), max_s=_percentile(waits, 1.0),
        drained_s=statistics.fmean(drained for _, drained in runs) if runs else 0.0, measured=service.measured,
    )  # fmt: skip


def _run(arriving: Sequence[Arrival], slots: int, service: Service, seed: int) -> tuple[list[float], float]:
    """Waits of those that were graded at their turn, and how long after the due date the last of them had a result."""
    if slots < 1 or not arriving:
        return [], 0.0
    chosen = random.Random(seed)  # noqa: S311  # a simulation
    free, waits, end = [0.0] * slots, [], 0.0
    places: deque[int] = deque()
    newest: dict[int, float] = {}
    coming = deque(arriving)
    while coming or places:
        at = free[0]
        while coming and (coming[0].at_s <= at or not places):
            arrival = coming.popleft()
            if arrival.student not in newest:
                places.append(arrival.student)
            newest[arrival.student] = arrival.at_s
            at = max(at, newest[places[0]]) if len(places) == 1 else at
        uploaded = newest.pop(places.popleft())
        end = max(free[0], uploaded) + service.draw(chosen)
        heapq.heapreplace(free, end)
        waits.append(end - uploaded)
    return waits, max(0.0, max(free) - HOURS * HOUR_S)


def _percentile(waits: Sequence[float], share: float) -> float:
    return waits[round(share * (len(waits) - 1))] if waits else 0.0


def _minutes(seconds: float) -> str:
    """`40 s`, `12 min`, `2.5 h`: rounded up."""
    if seconds < 90:  # noqa: PLR2004  # from there on minutes are easier to read
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{math.ceil(minutes / 30) / 2:g} h"  # noqa: PLR2004  # likewise
