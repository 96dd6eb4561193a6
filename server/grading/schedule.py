"""When each of those who wait would have their result: list scheduling with drawn service times. Pure and seeded.

One draw gives every job a time from what was measured and lets the slots work through the queue in its order. The
10th, 50th and 90th percentile over `DRAWS` draws are the interval. Longer queues than `MOST` are simulated that far and
continued at the same pace.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from server.grading.service_times import Job, ServiceTimes
from server.models import Work

DRAWS = 32
MOST = 1000
SEED = 20261121
LOW, LIKELY, HIGH = 0.1, 0.5, 0.9


@dataclass(frozen=True)
class Planned:
    """One who waits, at its place in the order."""

    id: int
    job: Job


@dataclass(frozen=True)
class Busy:
    """One that a slot runs now, and for how long it has."""

    job: Job
    since_s: float


@dataclass(frozen=True)
class Bench:
    """A node's slots: so many, what they do, and what some of them run now."""

    slots: int
    works: frozenset[Work] = frozenset(Work)
    busy: tuple[Busy, ...] = ()


@dataclass(frozen=True)
class Expected:
    """Seconds until the result; `approximate` where the queue was too long to simulate it whole."""

    low_s: float
    likely_s: float
    high_s: float
    approximate: bool = False


def expect(
    queue: Sequence[Planned], benches: Sequence[Bench], times: ServiceTimes, *, draws: int = DRAWS, seed: int = SEED
) -> Mapping[int, Expected]:
    """When each gets its result, by its id; those that no slot takes are left out."""
    chosen = random.Random(seed)  # noqa: S311  # a simulation; the same queue gives the same answer
    near = queue[:MOST]
    samples = {job: times.of(job) for job in {item.job for item in near} | {b.job for e in benches for b in e.busy}}
    ends: dict[int, list[float]] = {}
    for _ in range(draws):
        for item_id, end in _draw(near, benches, samples, chosen):
            ends.setdefault(item_id, []).append(end)
    expected = {item_id: _interval(each) for item_id, each in ends.items()}
    return expected | _continued(queue, expected)


def _draw(
    queue: Sequence[Planned],
    benches: Sequence[Bench],
    samples: Mapping[Job, tuple[float, ...]],
    chosen: random.Random,
) -> Iterator[tuple[int, float]]:
    """One course of events: who ends when."""
    waiting: dict[Work, deque[tuple[int, Planned]]] = {}
    for place, item in enumerate(queue):
        waiting.setdefault(item.job.work, deque()).append((place, item))
    free = _free_slots(benches, samples, chosen)
    while free and waiting:
        at, number, works = free[0]
        # Whoever comes first of those that this slot takes; most of the time there is one kind only.
        heads = [line for work, line in waiting.items() if work in works]
        if not heads:
            heapq.heappop(free)
            continue
        line = heads[0] if len(heads) == 1 else min(heads, key=lambda line: line[0][0])
        _, item = line.popleft()
        if not line:
            del waiting[item.job.work]
        own = samples[item.job]
        end = at + own[int(chosen.random() * len(own))]
        heapq.heapreplace(free, (end, number, works))
        yield item.id, end


def _free_slots(
    benches: Sequence[Bench], samples: Mapping[Job, tuple[float, ...]], chosen: random.Random
) -> list[tuple[float, int, frozenset[Work]]]:
    """A heap of slots by the time they are free; their number keeps equal times in order."""
    free: list[tuple[float, int, frozenset[Work]]] = []
    for bench in benches:
        ends = sorted(_remaining(busy, samples[busy.job], chosen) for busy in bench.busy)
        # What runs beyond the slots that the node has now has to end first.
        starts = [0.0] * max(0, bench.slots - len(ends)) + ends[max(0, len(ends) - bench.slots) :]
        free.extend((start, len(free) + index, bench.works) for index, start in enumerate(starts[: bench.slots]))
    heapq.heapify(free)
    return free


def _remaining(busy: Busy, own: tuple[float, ...], chosen: random.Random) -> float:
    """A time for what is left, from those that took longer than it has; from itself once it outlasts them all."""
    longer = [seconds for seconds in own if seconds > busy.since_s]
    if longer:
        return longer[int(chosen.random() * len(longer))] - busy.since_s
    return chosen.random() * max(1.0, busy.since_s)


def _interval(ends: list[float]) -> Expected:
    ends.sort()
    last = len(ends) - 1
    low_s, likely_s, high_s = (ends[round(share * last)] for share in (LOW, LIKELY, HIGH))
    return Expected(low_s, likely_s, high_s)


def _continued(queue: Sequence[Planned], near: Mapping[int, Expected]) -> dict[int, Expected]:
    """Those beyond what was simulated, at the pace of those within."""
    if len(queue) <= MOST or queue[MOST - 1].id not in near:
        return {}
    last = near[queue[MOST - 1].id]
    return {
        item.id: Expected(last.low_s * far, last.likely_s * far, last.high_s * far, approximate=True)
        for item, far in ((item, (MOST + place) / MOST) for place, item in enumerate(queue[MOST:], start=1))
    }
