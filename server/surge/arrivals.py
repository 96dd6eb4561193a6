"""Who hands in when before a due date: a seeded model of what a term showed.

One in ten hands in twelve times, the others about three times; arrivals grow exponentially towards the due date with a
time constant of 45 minutes. For 300 students that is 1 217 submissions in three hours, 916 of them in the last one.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

STUDENTS = 300
TOTAL = 1217
LAST_HOUR = 916
HOURS = 3
CONSTANT_S = 45 * 60.0
EAGER_SHARE = 0.1
EAGER_EACH = 12
HOUR_S = 3600.0
PER_STUDENT = TOTAL / STUDENTS


@dataclass(frozen=True, order=True)
class Arrival:
    """One submission; seconds from the beginning, `HOURS` before the due date."""

    at_s: float
    student: int


def arrivals(seed: int, *, students: int = STUDENTS, per_student: float = PER_STUDENT) -> list[Arrival]:
    """Everything that is handed in, in order; the counts are exact for every seed, the times are drawn."""
    chosen = random.Random(seed)  # noqa: S311  # a simulation
    owners = _owners(students, round(students * per_student))
    chosen.shuffle(owners)
    late = round(len(owners) * LAST_HOUR / TOTAL)
    last = (HOURS - 1) * HOUR_S
    times = [_time(chosen, last, HOURS * HOUR_S) for _ in range(late)]
    times += [_time(chosen, 0.0, last) for _ in range(len(owners) - late)]
    return sorted(Arrival(at, owner) for at, owner in zip(times, owners, strict=True))


def _owners(students: int, total: int) -> list[int]:
    """Whose each submission is: the eager ones have twelve, the others share the rest evenly."""
    eager = min(round(students * EAGER_SHARE), total // EAGER_EACH) if students > 1 else 0
    others = students - eager
    rest = total - eager * EAGER_EACH
    owners = [student for student in range(eager) for _ in range(EAGER_EACH)]
    return owners + [eager + index % others for index in range(rest)]


def _time(chosen: random.Random, begin_s: float, end_s: float) -> float:
    """Exponentially growing towards the end, within `begin_s` to `end_s`."""
    first = math.exp((begin_s - end_s) / CONSTANT_S)
    return end_s + CONSTANT_S * math.log(first + chosen.random() * (1 - first))
